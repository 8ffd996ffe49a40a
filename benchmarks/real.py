"""The default on real answers: its Brier score beside fits made by hand, and what it keeps.

    make bench AREAS=real REAL=FOLDER

The sets are those of `benchmarks.real_sets`. From each, labels are drawn at random in whole groups, and the
fits predict up to 1,500 of the other answers: the default of `calibrate` for so many labels;
isotonic regression, and logistic regression (Platt), on the geometric mean of the tokens' probabilities;
logistic regression on the logarithm of the mean surprisal; and the share of right labels. Differences are
paired, with 95 % intervals over sets and draws. Then the answers that `calibrate` and `score` keep when
they are asked for 10 % and 20 % errors.

Writes the tables of docs/background/real_answers.md, draws docs/brier.svg and docs/kept.svg. Minutes.
"""

import logging
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import kept
from benchmarks.intervals import Interval, broken, kept_cell, mean_over_sets
from benchmarks.pages import replace_table
from benchmarks.real_sets import ROOT, AnswerSet, named_folder, read_real_sets
from benchmarks.timing import Row, cpu_seconds
from trace_workflow.figures import figure_style
from tracecal.calibration.predictions import calibrate_all
from tracecal.calibrator.catalogue import LOG_RIDGE, MEAN_OF_THREE, SURPRISAL_RIDGE
from tracecal.calibrator.recommendation import MIN_LABELS_OF_MEAN
from tracecal.calibrator.training_set import MIN_ENTROPY_SHARE
from tracecal.estimators.estimator import Estimator
from tracecal.estimators.registry import ESTIMATORS
from tracecal.io.log import LOGGER
from tracecal.io.randomness import seeded

PAGE = ROOT / "docs" / "background" / "real_answers.md"
PICTURES = {name: ROOT / "docs" / f"{name}.svg" for name in ("brier", "kept")}
SIZES, DRAWS, MOST_EVALUATED, RATES = (20, 50, 100, 300), 10, 1500, (0.1, 0.2)
SHOWN = 100  # labels of the sentence above the first picture
CONFIDENCE, LOGARITHM = "features.len_norm_logp", "features.mean_surprisal_log_conf"
DEFAULT, BASE_RATE = "default", "base rate"
DEFAULTS = {e.id: e for e in ESTIMATORS if e.id in (LOG_RIDGE, MEAN_OF_THREE, SURPRISAL_RIDGE)}
BY_HAND = {"isotonic": CONFIDENCE, "Platt": CONFIDENCE, "logarithm": LOGARITHM}
FITS = (DEFAULT, "logarithm", "Platt", "isotonic", BASE_RATE)
NAMES = {
    "isotonic": "isotonic regression",
    "Platt": "Platt scaling",
    "logarithm": "logistic regression on logarithms",
    BASE_RATE: "base rate (share of right labels)",
}


def default_fit(answers: AnswerSet, n: int) -> Estimator:
    """The default of `calibrate` for `n` labelled answers like these (`choose_default`)."""
    share = answers.frame["entropy"].count() / len(answers.correct)
    if share < MIN_ENTROPY_SHARE:
        return DEFAULTS[SURPRISAL_RIDGE]
    return DEFAULTS[MEAN_OF_THREE if n >= MIN_LABELS_OF_MEAN else LOG_RIDGE]


def measure_brier(sets: Iterable[AnswerSet]) -> pl.DataFrame:
    """A row for each set, number of labels, draw and fit: its `brier` score."""
    rows = []
    for one in sets:
        for n in SIZES:
            if n + kept.LEAST_NEW // 2 <= len(one.correct):
                rows += [(one.kind, one.name, n, *row) for row in _brier_scores(one, n)]
    columns = ["kind", "set", "labels", "draw", "fit", "brier"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def split(answers: AnswerSet, n: int, draw: int) -> pl.DataFrame:
    """The answers of a draw as `calibrate_all` takes them: `rank` of their group, and `part`."""
    rng = seeded("real", n, draw)
    order = pl.Series("rank", rng.permutation(answers.groups.max() + 1)[answers.groups])
    rows = answers.frame.select("example_id").with_columns(order).sort("rank", "example_id")
    last = rows["rank"][n - 1]
    part = (
        pl.when(pl.col("rank") <= last).then(pl.lit("calibration")).otherwise(pl.lit("evaluation"))
    )
    rows = rows.filter((pl.col("rank") <= last) | (pl.int_range(pl.len()) < n + MOST_EVALUATED))
    return rows.select("example_id", "rank", split=pl.lit(draw, pl.Int64), part=part)


def _brier_scores(one: AnswerSet, n: int) -> list[tuple[int, str, float]]:
    """Draw, fit and Brier score."""
    splits = pl.concat(split(one, n, draw) for draw in range(DRAWS))
    answers = one.with_inputs.join(
        splits.select("example_id").unique(), on="example_id", how="semi"
    )
    default = default_fit(one, n)
    logistic = {DEFAULT: default.inputs} | {
        name: [BY_HAND[name]] for name in ("Platt", "logarithm")
    }
    own_fits = {DEFAULT: default.fit}
    predicted = [
        calibrate_all(answers, splits, logistic, "platt", own_fits)[0],
        calibrate_all(answers, splits, {"isotonic": [CONFIDENCE]}, "isotonic")[0],
    ]
    parts = splits.join(one.frame.select("example_id", "correct"), on="example_id")
    rates = parts.filter(part="calibration").group_by("split").agg(probability=pl.mean("correct"))
    base = parts.filter(part="evaluation").join(rates, on="split")
    predicted.append(
        base.select("split", "example_id", "probability", estimator=pl.lit(BASE_RATE)).select(
            predicted[0].columns
        )
    )
    labelled = pl.concat(predicted).join(
        one.frame.select("example_id", "correct"), on="example_id", validate="m:1"
    )
    squared = (pl.col("probability") - pl.col("correct")) ** 2
    scores = labelled.group_by("split", "estimator").agg(brier=squared.mean())
    return scores.sort("split", "estimator").rows()


def differences(scores: pl.DataFrame) -> pl.DataFrame:
    """`difference`, the default's Brier score minus each other fit's in the same draw."""
    keys = ["kind", "set", "labels", "draw"]
    default = scores.filter(fit=DEFAULT).select(*keys, default="brier")
    others = scores.filter(pl.col("fit") != DEFAULT)
    return others.join(default, on=keys).with_columns(
        difference=pl.col("default") - pl.col("brier")
    )


def measure_kept(sets: Iterable[AnswerSet]) -> pl.DataFrame:
    """A row for each set, number of labels, draw and rate: share `kept`, and `broken` or not."""
    rows = []
    for one in sets:
        for n, draw, labelled, _ in kept.draws(one):
            new = one.with_inputs.filter(~labelled)
            masks = kept.keep(one.frame.filter(labelled), new, RATES)
            for rate, mask in zip(RATES, masks, strict=True):
                failed = kept.is_broken(~one.correct[~labelled][mask], rate)
                rows.append((one.kind, one.name, n, draw, rate, mask.mean(), failed))
    columns = ["kind", "set", "labels", "draw", "rate", "kept", "broken"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def kinds(rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The rows of each kind, by its name and number of sets; and all."""
    parts = [(kind, part) for (kind,), part in rows.group_by("kind", maintain_order=True)]
    named = [(f"{kind} ({part['set'].n_unique()})", part) for kind, part in parts]
    return dict([*named, (f"**all** ({rows['set'].n_unique()})", rows)])


def brier_table(scores: pl.DataFrame) -> list[str]:
    """Brier scores of each kind with SHOWN labels, and of all with other numbers of labels.

    A star where the interval of the paired difference excludes 0.
    """
    head = f"| answers (sets) | labels | {' | '.join(FITS)} |"
    lines = [head, "|---" * (len(FITS) + 2) + "|"]
    *_, everything = by_kind = kinds(scores)
    pairs = [(name, SHOWN) for name in by_kind]
    for name, n in [*pairs, *((everything, n) for n in SIZES if n != SHOWN)]:
        of_size = by_kind[name].filter(labels=n)
        if of_size.height:
            cells = [_brier_cell(of_size, fit) for fit in FITS]
            lines.append(f"| {name} | {n} | {' | '.join(cells)} |")
    return lines


def _brier_cell(scores: pl.DataFrame, fit: str) -> str:
    mean, *_ = mean_over_sets(scores.filter(fit=fit), "brier")
    text = f"{mean:.3f}".removeprefix("0")
    if fit == DEFAULT:
        return text
    value, low, high = mean_over_sets(differences(scores).filter(fit=fit), "difference")
    star = "*" if low > 0 or high < 0 else ""
    return f"{text} ({value:+.3f}{star})".replace("0.", ".").replace("-", "−")


def kept_table(found: pl.DataFrame) -> list[str]:
    """By kind and error rate, the share kept and how often the rate was broken."""
    heads = [f"{n:,} labels" for n in kept.LABELS]
    lines = [f"| answers (sets) | errors | {' | '.join(heads)} |", "|---" * (len(heads) + 2) + "|"]
    *_, everything = by_kind = kinds(found)
    pairs = [(name, RATES[-1]) for name in by_kind]
    for name, rate in [*pairs, *((everything, rate) for rate in RATES[:-1])]:
        of_labels = [by_kind[name].filter(rate=rate, labels=n) for n in kept.LABELS]
        cells = [kept_cell(rows) if rows.height else "–" for rows in of_labels]
        lines.append(f"| {name} | {percent(rate)} | {' | '.join(cells)} |")
    return lines


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _row_of_sets(axes: Axes, y: float, by_set: pl.Series, mean: Interval, color: str) -> None:
    """Each set as a dash, and their mean with its interval."""
    axes.plot(by_set, [y] * len(by_set), "|", color=figure_style.OTHER.color, ms=6, mew=0.7)
    axes.plot(mean[1:], [y, y], color=color, linewidth=2.5)
    axes.plot(mean[0], y, "o", color=color, markersize=5)


def draw_brier(scores: pl.DataFrame) -> Figure:
    """A panel for each fit made by hand, a row for each number of labels."""
    figure = Figure(figsize=(figure_style.TEXT_WIDTH, 3.9))
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    compared = differences(scores)
    for axes, (fit, name) in zip(panels.flat, NAMES.items(), strict=True):
        for place, n in enumerate(SIZES):
            rows = compared.filter(fit=fit, labels=n)
            by_set = rows.group_by("set", maintain_order=True).agg(pl.mean("difference"))[
                "difference"
            ]
            mean = mean_over_sets(rows, "difference")
            _row_of_sets(axes, place, by_set, mean, figure_style.TRACE.color)
        axes.axvline(0, color=figure_style.MUTED, linewidth=0.8)
        axes.set_title(f"against {name}", fontweight="normal")
        axes.set_yticks(range(len(SIZES)), [f"{n} labels" for n in SIZES])
        axes.set_ylim(len(SIZES) - 0.5, -0.5)
    figure.supxlabel(
        "difference of Brier scores, negative where the default is better; a dash: one set; "
        "mean, 95 % interval",
        fontsize=figure_style.SMALL,
    )
    won, n = sets_won(compared, SHOWN, "isotonic")
    figure_style.message(
        figure,
        f"With {SHOWN} labels the default beats isotonic regression on {won} of {n} sets of real "
        "answers",
    )
    return figure


def sets_won(compared: pl.DataFrame, labels: int, fit: str) -> tuple[int, int]:
    """On how many sets the default is better, and of how many."""
    by_set = compared.filter(labels=labels, fit=fit).group_by("set").agg(pl.mean("difference"))
    return int((by_set["difference"] < 0).sum()), by_set.height


def draw_kept(found: pl.DataFrame) -> Figure:
    """A panel for each error rate, a row for each number of labels."""
    figure = Figure(figsize=(figure_style.TEXT_WIDTH, 2.5))
    panels = figure.subplots(1, len(RATES), sharex=True, sharey=True)
    for axes, rate in zip(panels, RATES, strict=True):
        for place, n in enumerate(kept.LABELS):
            rows = found.filter(rate=rate, labels=n)
            by_set = rows.group_by("set", maintain_order=True).agg(pl.mean("kept"))["kept"]
            mean = mean_over_sets(rows, "kept")
            _row_of_sets(axes, place, by_set, mean, figure_style.TRACE.color)
            share = broken(rows)[0]
            axes.text(
                1.03,
                place,
                f"broken {percent(round(share, 3))}",
                va="center",
                fontsize=figure_style.SMALL,
            )
        axes.set_title(f"at most {percent(rate)} errors")
        axes.set_yticks(range(len(kept.LABELS)), [f"{n:,} labels" for n in kept.LABELS])
        axes.set_ylim(len(kept.LABELS) - 0.5, -0.5)
        axes.set_xlim(-0.02, 1)
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    figure.supxlabel("share of answers kept (a dash: one set)", fontsize=figure_style.SMALL)
    most = max(broken(rows)[0] for _, rows in found.group_by("rate", "labels"))
    figure_style.message(
        figure,
        f"On real answers the error rate was broken in at most {percent(round(most, 3))} of draws, "
        "where 10 % may be",
    )
    return figure


def rows() -> Iterator[Row]:
    LOGGER.setLevel(logging.ERROR)
    folder = named_folder()
    sets = read_real_sets(folder)
    measured: dict[str, pl.DataFrame] = {}
    for name, measure in (("brier", measure_brier), ("kept", measure_kept)):

        def work(name: str = name, measure: object = measure) -> None:
            measured[name] = measure(sets)

        yield Row(f"{name} on {len(sets)} sets", cpu_seconds(work))
    tables = brier_table(measured["brier"]), kept_table(measured["kept"])
    for name, lines in zip(PICTURES, tables, strict=True):
        print("\n".join(lines))
        if folder is not None:
            replace_table(PAGE, name, lines)
    if folder is None:
        print("REAL names no folder of real answers: page and pictures stay as they are.")
        return
    with figure_style.applied(), tempfile.TemporaryDirectory() as pdf:
        for name, draw in (("brier", draw_brier), ("kept", draw_kept)):
            figure = draw(measured[name])
            words = " ".join(figure.get_suptitle().split())
            figure_style.save(figure, Path(pdf) / "f.pdf", PICTURES[name], "Real answers", words)
