"""The default on real answers: its Brier score beside fits made by hand, and what it keeps.

    make bench AREAS=real REAL=FOLDER

The sets are those of `benchmarks.real_sets`. From each, labels are drawn at random in whole groups, and the
fits predict up to 1,500 of the other answers: the default of `calibrate` for so many labels;
isotonic regression, and logistic regression (Platt), on the geometric mean of the tokens' probabilities;
logistic regression on the logarithm of the mean surprisal; and the share of right labels. Differences are
paired, with 95 % intervals over sets and draws. Then the answers that `calibrate` and `score` keep when
they are asked for 10 % and 20 % errors.

Cities and demo are of the small model on which the default was chosen; the other sets are not.

Writes the tables of docs/background/real_answers.md, draws docs/brier.svg and docs/kept.svg. Minutes.
"""

import logging
from collections.abc import Iterable, Iterator

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmarks import kept
from benchmarks.intervals import kept_cell, mean_over_sets
from benchmarks.pages import replace_table
from benchmarks.pictures import save_picture
from benchmarks.real_sets import CITIES, DEMO, ROOT, AnswerSet, named_folder, read_real_sets
from benchmarks.timing import Row, cpu_seconds
from trace_workflow.figures import figure_style
from tracecal.calibrator.catalogue import LOG_RIDGE, MEAN_OF_THREE, SURPRISAL_RIDGE
from tracecal.calibrator.recommendation import MIN_LABELS_OF_MEAN
from tracecal.calibrator.training_set import MIN_ENTROPY_SHARE
from tracecal.estimators.estimator import Estimator
from tracecal.estimators.registry import ESTIMATORS
from tracecal.fits.predictions import calibrate_all
from tracecal.io.log import LOGGER
from tracecal.io.randomness import seeded

PAGE = ROOT / "docs" / "background" / "real_answers.md"
PICTURES = {name: ROOT / "docs" / f"{name}.svg" for name in ("brier", "kept")}
SIZES, DRAWS, MOST_EVALUATED, RATES = (20, 50, 100, 300), 10, 1500, (0.1, 0.2)
SHOWN = 100  # labels of the first picture
TIE = 0.002  # a difference of Brier scores that is smaller
CHOSEN_ON = (CITIES, DEMO)  # the model on which the default was chosen gave these answers
CONFIDENCE, LOGARITHM = "features.len_norm_logp", "features.mean_surprisal_log_conf"
DEFAULT, BASE_RATE = "default", "base rate"
DEFAULTS = {e.id: e for e in ESTIMATORS if e.id in (LOG_RIDGE, MEAN_OF_THREE, SURPRISAL_RIDGE)}
BY_HAND = {"isotonic": CONFIDENCE, "Platt": CONFIDENCE, "logarithm": LOGARITHM}
# Of a set's answers what is kept: its name, above which share, and up to which.
PARTS = (
    ("nothing kept", -1.0, 0.0),
    ("up to a quarter", 0.0, 0.25),
    ("up to a half", 0.25, 0.5),
    ("more", 0.5, 1.0),
)
# Of a bar and of the number in it.
SHADES = (
    (figure_style.FAINT, figure_style.INK),
    (figure_style.FAMILIES["entropy"].color, "#ffffff"),
    (figure_style.FAMILIES["likelihood"].color, "#ffffff"),
    (figure_style.INK, "#ffffff"),
)
FITS = (DEFAULT, "logarithm", "Platt", "isotonic", BASE_RATE)
NAMES = {
    "isotonic": "isotonic\nregression",
    "Platt": "Platt scaling",
    "logarithm": "logistic regression\non the logarithm",
    BASE_RATE: "base rate",
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
    """The rows of each kind, by its name and number of sets; of sets that chose no fit; and all."""
    parts = [(kind, part) for (kind,), part in rows.group_by("kind", maintain_order=True)]
    parts.append((f"**all but {' and '.join(CHOSEN_ON)}**", of_others(rows)))
    parts.append(("**all**", rows))
    return {f"{kind} ({part['set'].n_unique()})": part for kind, part in parts if part.height}


def of_others(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of sets by models on which the default was not chosen."""
    return rows.filter(~pl.col("kind").is_in(CHOSEN_ON))


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


def won_table(scores: pl.DataFrame) -> list[str]:
    """On how many sets the default is better than each fit, with SHOWN labels."""
    compared = differences(scores).filter(labels=SHOWN)
    groups = {"all sets": compared, f"all but {' and '.join(CHOSEN_ON)}": of_others(compared)}
    groups = {name: rows for name, rows in groups.items() if rows.height}
    lines = [f"| better than | {' | '.join(groups)} |", "|---" * (len(groups) + 1) + "|"]
    for fit, name in NAMES.items():
        counts = [sets_won(rows, fit) for rows in groups.values()]
        cells = [f"on {won} of {n}" for won, n in counts]
        lines.append(f"| {' '.join(name.split())} | {' | '.join(cells)} |")
    return lines


def kept_table(found: pl.DataFrame) -> list[str]:
    """By kind and error rate, the share kept, how often the rate was broken, and of how many sets."""
    heads = [f"{n:,} labels" for n in kept.LABELS]
    lines = [f"| answers (sets) | errors | {' | '.join(heads)} |", "|---" * (len(heads) + 2) + "|"]
    *_, everything = by_kind = kinds(found)
    pairs = [(name, RATES[-1]) for name in by_kind]
    for name, rate in [*pairs, *((everything, rate) for rate in RATES[:-1])]:
        of_labels = [by_kind[name].filter(rate=rate, labels=n) for n in kept.LABELS]
        cells = [
            f"{kept_cell(rows)}<br>{_sets(rows)}" if rows.height else "–" for rows in of_labels
        ]
        lines.append(f"| {name} | {percent(rate)} | {' | '.join(cells)} |")
    return lines


def _sets(rows: pl.DataFrame) -> str:
    n = rows["set"].n_unique()
    return f"{n}&nbsp;set{'s' if n > 1 else ''}"


def nothing_table(found: pl.DataFrame) -> list[str]:
    """On how many sets nothing is kept in any draw, and what the two with most add to the mean."""
    lines = ["| labels | nothing is kept on | the two sets with most, of all that is kept |"]
    lines.append("|---" * 3 + "|")
    for n in kept.LABELS:
        shares = kept_by_set(found, n)["kept"].sort(descending=True)
        if shares.len():
            share = shares.head(2).sum() / shares.sum() if shares.sum() else 0
            nothing = (shares == 0).sum()
            lines.append(
                f"| {n:,} | {nothing} of {shares.len()} sets | {percent(round(share, 2))} |"
            )
    return lines


def kept_by_set(found: pl.DataFrame, labels: int) -> pl.DataFrame:
    """The mean share kept over draws at the last rate, a row for each `kind` and `set`."""
    of_labels = found.filter(rate=RATES[-1], labels=labels)
    return of_labels.group_by("kind", "set", maintain_order=True).agg(pl.mean("kept"))


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _swarm(values: np.ndarray, width: float) -> np.ndarray:
    """How far each value's point is moved aside, [n], so that none hides another."""
    places = np.zeros(len(values))
    for number, place in enumerate(order := np.argsort(values, kind="stable")):
        near = [i for i in order[:number] if abs(values[i] - values[place]) < width]
        taken = {round(places[i]) for i in near}
        free = (sign * step for step in range(len(values)) for sign in (1, -1))
        places[place] = next(step for step in free if step not in taken)
    return places


def _draw_sets(axes: Axes, x: np.ndarray, y: np.ndarray, kinds: pl.Series) -> None:
    """A point for each set: hollow where the default was chosen on the model that gave it."""
    chosen_on = kinds.is_in(CHOSEN_ON).to_numpy()
    for mask, look, inside in (
        (~chosen_on, figure_style.FAMILIES["likelihood"], None),
        (chosen_on, figure_style.TRACE, "#ffffff"),
    ):
        style = figure_style.point(look) | {"ms": 3.6, "marker": "o"}
        filled = {"mew": 0} if inside is None else {"mfc": inside, "mew": 1}
        axes.plot(x[mask], y[mask], ls="", alpha=0.9, **style, **filled)


def _set_keys() -> list[Line2D]:
    blue, amber = figure_style.FAMILIES["likelihood"], figure_style.TRACE._replace(marker="o")
    own = "a set by the small model on which the default was chosen"
    return [figure_style.key("a set", blue), figure_style.key(own, amber, inside="#ffffff")]


def draw_brier(scores: pl.DataFrame) -> Figure:
    """How much better the default is than each fit by hand on each set, with SHOWN labels."""
    figure = Figure(figsize=(figure_style.TEXT_WIDTH, 3.3))
    axes, compared = figure.subplots(), differences(scores).filter(labels=SHOWN)
    for place, fit in enumerate(NAMES):
        rows = compared.filter(fit=fit).group_by("kind", "set", maintain_order=True)
        by_set = rows.agg(better=-pl.mean("difference"))
        better = by_set["better"].to_numpy()
        aside = np.clip(0.07 * _swarm(better, 0.0022), -0.42, 0.42)
        _draw_sets(axes, better, place + aside, by_set["kind"])
        won, n = sets_won(compared, fit)
        beside = {"transform": axes.get_yaxis_transform(), "va": "center"}
        axes.text(1.01, place, f"better on\n{won} of {n}", fontsize=figure_style.SMALL, **beside)
    axes.axvline(0, color=figure_style.INK, linewidth=1)
    figure_style.set_row_axis(axes, len(NAMES))
    axes.set_yticks(range(len(NAMES)), [f"than {name}" for name in NAMES.values()])
    axes.set_xlabel("Brier score: how much lower (better) the default's is")
    figure_style.legend(figure, _set_keys())
    figure_style.message(figure, brier_message(compared))
    return figure


def brier_message(compared: pl.DataFrame) -> str:
    """What the picture of Brier scores says."""
    won, n = sets_won(compared, "isotonic")
    others = of_others(compared).filter(fit="logarithm")
    text = f"With {SHOWN} labels the default beats isotonic regression on {won} of {n} sets"
    if others.is_empty():
        return text
    gain = 0.0 - round(mean_over_sets(others, "difference")[0], 3)
    how = "ties with" if abs(gain) < TIE else f"is {gain:+.3f} better than"
    return f"{text}; on other models it {how} one logistic regression"


def sets_won(compared: pl.DataFrame, fit: str) -> tuple[int, int]:
    """On how many sets the default is better, and of how many."""
    by_set = compared.filter(fit=fit).group_by("set").agg(pl.mean("difference"))
    return int((by_set["difference"] < 0).sum()), by_set.height


def draw_kept(found: pl.DataFrame) -> Figure:
    """Of how many sets how much is kept at the last rate, a bar for each number of labels."""
    figure = Figure(figsize=(figure_style.TEXT_WIDTH, 2.5))
    axes, ticks = figure.subplots(), []
    for place, n in enumerate(kept.LABELS):
        shares, begin = kept_by_set(found, n)["kept"], 0.0
        for (_, least, most), (color, ink) in zip(PARTS, SHADES, strict=True):
            n_sets = ((shares > least) & (shares <= most)).sum()
            width = n_sets / shares.len()
            axes.barh(place, width, left=begin, color=color, height=0.72)
            if n_sets:
                middle = {"ha": "center", "va": "center", "fontsize": figure_style.SMALL}
                axes.text(begin + width / 2, place, str(n_sets), color=ink, **middle)
            begin += width
        ticks.append(f"{n:,} labels, {shares.len()} sets")
    figure_style.set_row_axis(axes, len(ticks))
    axes.set_yticks(range(len(ticks)), ticks)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set_xlabel("share of the sets of answers; in each bar, their number")
    keys = [
        Patch(color=color, label=f" {name}")
        for (name, *_), (color, _) in zip(PARTS, SHADES, strict=True)
    ]
    figure_style.legend(figure, keys)
    figure_style.message(figure, kept_message(found))
    return figure


def kept_message(found: pl.DataFrame) -> str:
    """What the picture of kept answers says."""
    few, many = SHOWN, kept.LABELS[-1]
    (least, n_least), (most, n_most) = (_kept_somewhere(found, n) for n in (few, many))
    return (
        f"At most {percent(RATES[-1])} errors: with {few} labels something is kept on {least} of "
        f"{n_least} sets, with {many:,} on {most} of {n_most}"
    )


def _kept_somewhere(found: pl.DataFrame, labels: int) -> tuple[int, int]:
    shares = kept_by_set(found, labels)["kept"]
    return int((shares > 0).sum()), shares.len()


def rows() -> Iterator[Row]:
    LOGGER.setLevel(logging.ERROR)
    folder = named_folder()
    sets = read_real_sets(folder)
    measured: dict[str, pl.DataFrame] = {}
    for name, measure in (("brier", measure_brier), ("kept", measure_kept)):

        def work(name: str = name, measure: object = measure) -> None:
            measured[name] = measure(sets)

        yield Row(f"{name} on {len(sets)} sets", cpu_seconds(work))
    tables = {
        "brier": brier_table(measured["brier"]),
        "won": won_table(measured["brier"]),
        "kept": kept_table(measured["kept"]),
        "nothing": nothing_table(measured["kept"]),
    }
    for name, lines in tables.items():
        print("\n".join(lines))
        if folder is not None:
            replace_table(PAGE, name, lines)
    if folder is None:
        print("REAL names no folder of real answers: page and pictures stay as they are.")
        return
    with figure_style.applied():
        for name, draw in (("brier", draw_brier), ("kept", draw_kept)):
            save_picture(draw(measured[name]), PICTURES[name], "Real answers")
