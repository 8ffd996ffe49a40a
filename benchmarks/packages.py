"""The same labels for tracecal and four packages that keep answers at an error rate.

    make bench AREAS=packages REAL=FOLDER    # installs the packages in an environment of their own

Each package is used as its page says and with its defaults; docs/background/compared.md says how. They
get the labels and one confidence for each answer, the geometric mean of its tokens' probabilities;
tracecal gets the same labels and the traces.

Real answers are those of `benchmarks.real_sets`. Labels are drawn at random, and the labels of all other
answers are the truth. Populations are those of `simulations.guarantees` that were made to break
guarantees, with their own error rates: answers of one token, the probability of which orders them as
their scores do and is spread evenly over [0, 1].

Writes the table of docs/background/compared.md and draws docs/compared.svg. Minutes.
"""

import logging
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from scipy.special import ndtr

from benchmarks.intervals import Interval, both, kept_cell, mean_over_sets, wilson
from benchmarks.kept import LABELS, draws, is_broken, keep
from benchmarks.pages import replace_table
from benchmarks.pictures import save_picture
from benchmarks.real_sets import ROOT, AnswerSet, named_folder, read_real_sets
from benchmarks.timing import Row, paired
from simulations.guarantees import POPULATIONS, GroupPopulation
from trace_workflow.figures import figure_style
from tracecal.answers.answers import answers_in
from tracecal.io.log import LOGGER

PAGE, PICTURE = ROOT / "docs" / "background" / "compared.md", ROOT / "docs" / "compared.svg"
CAPTION = "By how much tracecal keeps more real answers than each package, by the number of labels."
RATE, SIMULATED = 0.2, 40
REFERENCE = 4000  # groups that stand for a population
LEARN = 0.3  # of the labels, for the order of MAPIE's thresholds
TRACECAL, UNEQUAL = "tracecal", "unequal groups"
ONE_EACH = ", one answer of each group"
BETAS = np.logspace(-25, 0, 1000)  # MAPIE's default
HOSTILE = {
    "single answers": (
        "single answers, rate just missed",
        "single answers, the best scores mislead",
    ),
    "ties": ("ties: three different scores", "one constant score"),
    "equal groups": ("groups of 4, alike",),
    UNEQUAL: (
        "groups of 1 and 7, the large ones worse",
        "groups of 1 and 7, the large ones kept first and wrong",
        "groups of 1 to 5, wrong as a whole",
    ),
}

# Confidences and verdicts of labelled answers, and an error rate -> the least confidence that is kept.
Threshold = Callable[[np.ndarray, np.ndarray, float], float]


def mapie(confidence: np.ndarray, correct: np.ndarray, rate: float) -> float:
    """`BinaryClassificationController` for precision, by its default, Bonferroni-Holm."""
    controller = _mapie_controller(rate, confidence, "bonferroni_holm")
    return _calibrated(controller, confidence, correct)


def mapie_sequence(confidence: np.ndarray, correct: np.ndarray, rate: float) -> float:
    """The same by its advice for precision: a part of the labels orders the thresholds."""
    n = round(LEARN * len(confidence))  # the labels are in random order
    # Of the values below the least possible p-value one is enough; each takes half a millisecond.
    betas = BETAS[max(np.searchsorted(BETAS, (1 - rate) ** n) - 1, 0) :]
    least = np.minimum(confidence[:n].max(), confidence[n:].max())
    controller = _mapie_controller(rate, np.array([least]), "split_fixed_sequence")
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore")
        controller.learn_fixed_sequence_order(
            confidence[:n], correct[:n].astype(int), beta_grid=betas
        )
    return _calibrated(controller, confidence[n:], correct[n:])


def _mapie_controller(rate: float, confidence: np.ndarray, method: str) -> object:
    """A threshold that keeps no label has NaN as p-value, and then none is found: it is left out."""
    from mapie.risk_control import BinaryClassificationController

    thresholds = np.linspace(0, 0.99, 100)  # its default
    return BinaryClassificationController(
        lambda x: np.column_stack([1 - x, x]),
        "precision",
        target_level=1 - rate,
        list_predict_params=thresholds[thresholds <= confidence.max()],
        fwer_method=method,
    )


def _calibrated(controller: object, confidence: np.ndarray, correct: np.ndarray) -> float:
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore")  # that there is no threshold
        controller.calibrate(confidence, correct.astype(int))
    found = controller.best_predict_param
    return math.inf if found is None else float(found)


def safedecide(confidence: np.ndarray, correct: np.ndarray, rate: float) -> float:
    from safedecide import calibrate_selective

    return calibrate_selective(confidence, correct, alpha=rate, delta=0.1).threshold


def safedecide_quantiles(confidence: np.ndarray, correct: np.ndarray, rate: float) -> float:
    """`safedecide` with each confidence's quantile among the labels: its thresholds are fixed."""
    ordered = np.sort(confidence)
    quantile = np.searchsorted(ordered, confidence, side="right") / len(ordered)
    least = safedecide(quantile, correct, rate)
    return least if math.isinf(least) else ordered[max(math.ceil(least * len(ordered)) - 1, 0)]


def deferguard(confidence: np.ndarray, correct: np.ndarray, rate: float) -> float:
    """It refuses few labels: fewer than 160 at an error rate of 20 %."""
    from deferguard import CalibrationExample, Calibrator, InsufficientCalibrationDataError

    pairs = zip(confidence.tolist(), correct.tolist(), strict=True)
    examples = [CalibrationExample(signal=signal, correct=right) for signal, right in pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that errors do not fall with the signal
        try:
            return Calibrator(alpha=rate).fit(examples).threshold
        except InsufficientCalibrationDataError:
            return math.inf


def cci(confidence: np.ndarray, correct: np.ndarray, rate: float) -> float:
    """A local gate with the guarantee 'fdr', which is about the answers that it approves."""
    from cli_sdk import CustomBackend, Gate, LocalCLIClient

    class Backend(CustomBackend):
        access_level = "L1"

        def score_options(self, context: dict, instructions: str, options: dict) -> dict:
            return {"true": context["confidence"], "false": 1 - context["confidence"]}

    gate = Gate(
        instructions="Is the answer right?",
        calibration_profile="answers",
        guarantee="fdr",
        target=rate,
    )
    examples = [
        {"context": {"confidence": value}, "label": right}
        for value, right in zip(confidence.tolist(), correct.tolist(), strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        client = LocalCLIClient(Backend(), store=folder, max_workers=1)
        client.calibrate(gate, examples)
        answer = client.evaluate(context={"confidence": 0.5}, queries={"gate": gate})
    found = answer.answers["gate"].raw.get("threshold")
    return math.inf if found is None else found


PACKAGES: Mapping[str, Threshold] = {
    "safedecide": safedecide,
    "safedecide, quantiles": safedecide_quantiles,
    "cci-sdk": cci,
    "MAPIE, sequence": mapie_sequence,
    "MAPIE, default": mapie,
    "deferguard": deferguard,
}


def measure_real(sets: list[AnswerSet]) -> pl.DataFrame:
    """A row for each set, number of labels, draw and package: share `kept`, and `broken` or not."""
    rows = []
    for one in sets:
        confidence, correct = one.confidence, one.correct
        for n, draw, labelled, rng in draws(one):
            new = one.with_inputs.filter(~labelled)
            (mask,) = keep(one.frame.filter(labelled), new, [RATE])
            masks, places = {TRACECAL: mask}, rng.permutation(np.flatnonzero(labelled))
            for name, find in PACKAGES.items():
                least = find(confidence[places], correct[places], RATE)
                masks[name] = confidence[~labelled] >= least
            for name, mask in masks.items():
                failed = is_broken(~correct[~labelled][mask], RATE)
                rows.append((one.kind, one.name, n, draw, name, mask.mean(), failed))
    columns = ["kind", "set", "labels", "draw", "package", "kept", "broken"]
    return pl.DataFrame(rows, schema=columns, orient="row")


@dataclass(frozen=True)
class Simulation:
    """A population and the answers that stand for it."""

    population: GroupPopulation

    def draw(self, rng: np.random.Generator, groups: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Answers as `tracecal.read_answers` gives them, and their `risk` and `wrong`."""
        drawn = self.population.draw(rng, groups)
        names = [f"{rng.integers(2**62)}.{place}" for place in range(len(drawn.group))]
        confidence = ndtr(drawn.score)
        rows = pl.DataFrame(
            {
                "example_id": names,
                "group_id": [f"g{number}" for number in drawn.group],
                "surprisal": -np.log(confidence)[:, None],
                "correct": ~drawn.wrong,
            },
            schema_overrides={"surprisal": pl.List(pl.Float32)},
        )
        truth = pl.DataFrame(
            {
                "confidence": confidence,
                "group": drawn.group,
                "risk": drawn.risk,
                "wrong": drawn.wrong,
            }
        )
        template = _template()
        rows = template.drop(rows.columns).join(rows, how="cross").select(template.columns)
        return rows, truth


@cache
def _template() -> pl.DataFrame:
    return answers_in([{"id": "a", "logprobs": [-1.0], "correct": True, "group": "a"}]).frame


def measure_populations() -> pl.DataFrame:
    """As `measure_real`; of unequal groups also with one random answer of each group.

    What tracecal keeps, and what packages keep from one answer of each group, counts each group
    once, as their statements do; what packages keep from all answers counts answers.
    """
    rows = []
    for kind, names in HOSTILE.items():
        for seed, name in enumerate(names):
            population = POPULATIONS[name]
            simulation, rate = Simulation(population), population.rate
            new, truth = simulation.draw(np.random.default_rng([seed, 0]), REFERENCE)
            new = AnswerSet(name, kind, new).with_inputs
            values = truth["confidence"].to_numpy()
            group_share = 1 / truth.select(pl.len().over("group")).to_series()
            for n in LABELS:
                for draw in range(SIMULATED):
                    rng = np.random.default_rng([seed, n, draw])
                    labelled, facts = simulation.draw(rng, n)
                    enough = facts["group"] <= facts["group"][n - 1]
                    labelled, facts = labelled.filter(enough), facts.filter(enough)
                    (mask,) = keep(labelled, new, [rate])
                    masks = {TRACECAL: mask}
                    facts = facts.sample(fraction=1, shuffle=True, seed=draw)
                    ways = {"": facts}
                    if kind == UNEQUAL:
                        ways |= {ONE_EACH: facts.unique("group", keep="first", maintain_order=True)}
                    for way, chosen in ways.items():
                        labels = chosen["confidence"].to_numpy(), ~chosen["wrong"].to_numpy()
                        for package, find in PACKAGES.items():
                            masks[package + way] = values >= find(*labels, rate)
                    for package, mask in masks.items():
                        counts_groups = package == TRACECAL or package.endswith(ONE_EACH)
                        weight = mask * (group_share.to_numpy() if counts_groups else 1)
                        failed = weight.any() and np.average(truth["risk"], weights=weight) > rate
                        rows.append((kind, name, n, draw, package, mask.mean(), bool(failed)))
    columns = ["kind", "set", "labels", "draw", "package", "kept", "broken"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def most_broken(rows: pl.DataFrame) -> Interval:
    """How often the error rate was broken, of the set and number of labels where most often."""
    counts = rows.group_by("set", "labels").agg(pl.col("broken").sum(), n=pl.len())
    *_, count, n = counts.sort("broken", "set", "labels").row(-1)
    return wilson(count, n)


def tables(real: pl.DataFrame, simulated: pl.DataFrame) -> list[str]:
    """A row for each package, in Markdown: real answers by labels, and populations by kind."""
    kinds = [*HOSTILE, f"{UNEQUAL}{ONE_EACH}"]
    lines = [
        f"| real answers | {' | '.join(f'{n:,} labels' for n in LABELS)} |",
        "|---" * (len(LABELS) + 1) + "|",
    ]
    for name in (TRACECAL, *PACKAGES):
        cells = [kept_cell(real.filter(labels=n, package=name)) for n in LABELS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", f"| populations | {' | '.join(kinds)} |", "|---" * (len(kinds) + 1) + "|"]
    for name in (TRACECAL, *PACKAGES):
        of_kinds = [simulated.filter(kind=kind, package=name) for kind in HOSTILE]
        of_kinds.append(simulated.filter(package=name + ONE_EACH))
        cells = [
            both(mean_over_sets(rows, "kept"), most_broken(rows)) if rows.height else "–"
            for rows in of_kinds
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


LOOKS = dict(zip(PACKAGES, (*figure_style.FAMILIES.values(), figure_style.OTHER), strict=True))


def paired_differences(real: pl.DataFrame) -> pl.DataFrame:
    """By how much tracecal keeps more than each package from the same labels: `difference`."""
    ours = real.filter(package=TRACECAL).select("set", "labels", "draw", ours="kept")
    others = real.filter(pl.col("package") != TRACECAL)
    pairs = others.join(ours, on=["set", "labels", "draw"], maintain_order="left", validate="m:1")
    return pairs.with_columns(difference=pl.col("ours") - pl.col("kept"))


def draw(real: pl.DataFrame) -> Figure:
    """By how much tracecal keeps more of real answers than each package, from the same labels."""
    figure = Figure(figsize=(figure_style.TEXT_WIDTH, 3.0))
    axes, pairs = figure.subplots(), paired_differences(real)
    for place, (name, look) in enumerate(LOOKS.items()):
        for index, n in enumerate(LABELS):
            x = index + (place - (len(LOOKS) - 1) / 2) * 0.13
            rows = pairs.filter(labels=n, package=name)
            mean, low, high = mean_over_sets(rows, "difference")
            axes.plot([x, x], [low, high], color=look.color, linewidth=1.2)
            axes.plot([x], [mean], linestyle="", mew=0, **figure_style.point(look))
    axes.axhline(0, color=figure_style.INK, linewidth=1)
    axes.set_xticks(range(len(LABELS)), [f"{n:,}" for n in LABELS])
    axes.set_xlabel("labels")
    axes.set_ylabel("tracecal keeps more, %")
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:+.0f}" if value else "0")
    figure_style.legend(
        figure, [figure_style.key(f"than {name}", look) for name, look in LOOKS.items()]
    )
    figure_style.message(figure, headline(real))
    return figure


def headline(real: pl.DataFrame) -> str:
    """How much more of real answers tracecal keeps than the next package, from 100 labels."""
    kept = {
        name: mean_over_sets(real.filter(labels=100, package=name), "kept")[0]
        for name in (TRACECAL, *PACKAGES)
    }
    best = max(PACKAGES, key=kept.__getitem__)
    gain = f"{100 * (kept[TRACECAL] - kept[best]):.1f}\N{NO-BREAK SPACE}%"
    return (
        f"From 100 labels tracecal keeps {gain} of real answers more than {best}, the next package"
    )


def rows() -> Iterator[Row]:
    if not all(map(find_spec, ("mapie", "safedecide", "deferguard", "cli_sdk"))):
        print("The packages are not installed: their table is left out.")
        return
    LOGGER.setLevel(logging.ERROR)
    folder = named_folder()
    sets = read_real_sets(folder)
    real, simulated = measure_real(sets), measure_populations()
    lines = tables(real, simulated)
    print("\n".join(lines))
    if folder is None:
        print("REAL names no folder of real answers: page and picture stay as they are.")
    else:
        replace_table(PAGE, "packages", lines)
        with figure_style.applied():
            save_picture(draw(real), PICTURE, "Packages", CAPTION)
    one = sets[0]
    n, rng = 300, np.random.default_rng(0)
    labelled = one.draw_labelled(rng, n)
    work = partial(keep, one.frame.filter(labelled), one.with_inputs, [RATE])
    pair = one.confidence[labelled], one.correct[labelled]
    for name, find in PACKAGES.items():
        yield paired(f"a threshold from {n} labels", work, partial(find, *pair, RATE), name)
