"""Two promises on real answers: what people need not check, and what is kept.

    make bench AREAS=promises REAL=FOLDER

The sets are those of `benchmarks.real_sets`. From each, labels are drawn at random in whole groups, and
`calibrate` finds the thresholds of the overall error rates and of the error rates of the kept. All answers
of the set are the truth: a promise is broken where a larger share of all is kept and wrong, or where a
larger share of the kept is wrong.

Writes the table of docs/background/real_answers.md and draws docs/promises.svg. Minutes.
"""

import logging
import math
from collections.abc import Iterable, Iterator

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from benchmarks import kept
from benchmarks.intervals import broken, mean_over_sets
from benchmarks.pages import replace_table
from benchmarks.pictures import save_picture
from benchmarks.real import PAGE, kinds, percent
from benchmarks.real_sets import ROOT, AnswerSet, named_folder, read_real_sets
from benchmarks.timing import Row, cpu_seconds
from trace_workflow.figures import figure_style
from tracecal.fits.fit_settings import FitSettings
from tracecal.io.log import LOGGER

PICTURE = ROOT / "docs" / "promises.svg"
LABELS, RATES, DRAWS = (60, 100, 200, 400), (0.05, 0.1, 0.2), 5
SHOWN_RATE, SHOWN_LABELS = 0.1, 100  # of the table's rows by kind, and of the picture's message
OVERALL, OF_KEPT = "nobody checks", "kept"  # the shares of both promises
COLUMNS = ["kind", "set", "labels", "draw", "promise", "rate", "share", "broken"]


def measure(sets: Iterable[AnswerSet]) -> pl.DataFrame:
    """A row for each set, number of labels, draw, promise and rate: the `share`, and `broken` or not."""
    rows = []
    for one in sets:
        for n in LABELS:
            for draw in range(DRAWS) if n <= len(one.correct) else ():
                rng = np.random.default_rng([n, draw])
                labelled = one.draw_labelled(rng, n)
                names = one.kind, one.name, n, draw
                rows += [(*names, *row) for row in _of_draw(one, labelled)]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def _of_draw(answers: AnswerSet, labelled: np.ndarray) -> Iterator[tuple[str, float, float, bool]]:
    """Promise, rate, share and whether the promise is broken."""
    settings = FitSettings().with_targets(RATES, RATES)
    labels, new = answers.frame.filter(labelled), answers.with_inputs
    (control,), score = kept.guarantee(labels, new, [settings])
    wrong = ~answers.correct
    for promise, entries in ((OVERALL, control.overall), (OF_KEPT, control.thresholds)):
        for entry in entries:
            is_kept = score >= (math.inf if entry.threshold is None else entry.threshold)
            n_counted = len(wrong) if promise == OVERALL else int(is_kept.sum())
            failed = bool((is_kept & wrong).sum() > entry.error_rate * n_counted)
            yield promise, entry.error_rate, float(is_kept.mean()), failed


def table(measured: pl.DataFrame) -> list[str]:
    """Each kind at SHOWN_RATE, and all at each rate: the mean share, and how often it is broken."""
    heads = [f"{n} labels" for n in LABELS]
    lines = [f"| answers (sets) | rate | share | {' | '.join(heads)} |", "|---" * 7 + "|"]
    *names, everything = by_kind = kinds(measured)
    pairs = [(name, SHOWN_RATE) for name in names]
    for name, rate in [*pairs, *((everything, rate) for rate in RATES)]:
        for promise in (OVERALL, OF_KEPT):
            rows = by_kind[name].filter(rate=rate, promise=promise)
            cells = [_cell(rows.filter(labels=n)) for n in LABELS]
            lines.append(f"| {name} | {percent(rate)} | {promise} | {' | '.join(cells)} |")
    return lines


def _cell(rows: pl.DataFrame) -> str:
    if rows.is_empty():
        return "–"
    text = f"{mean_over_sets(rows, 'share')[0]:.2f} (broken {broken(rows)[0]:.2f})"
    return text.replace("0.", ".")


def draw(measured: pl.DataFrame) -> Figure:
    """A panel for each rate: both shares by the number of labels, means over sets."""
    figure = Figure(figsize=(figure_style.TEXT_WIDTH, 2.4))
    styles = {OVERALL: figure_style.TRACE.color, OF_KEPT: figure_style.TRACE_PLUS.color}
    panels = figure.subplots(1, len(RATES), sharey=True)
    for axes, rate in zip(panels, RATES, strict=True):
        for promise, color in styles.items():
            shares = [_mean(measured, promise, rate, n) for n in LABELS]
            axes.plot(range(len(LABELS)), shares, "o-", color=color, markersize=4, label=promise)
        axes.set_title(f"at most {percent(rate)} wrong", fontweight="normal")
        axes.set_xticks(range(len(LABELS)), LABELS)
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    panels[0].legend(loc="upper left")
    figure.supxlabel("labels", fontsize=figure_style.SMALL)
    unchecked, share = (
        percent(round(_mean(measured, promise, SHOWN_RATE, SHOWN_LABELS), 2)) for promise in styles
    )
    figure_style.message(
        figure,
        f"With {SHOWN_LABELS} labels and at most {percent(SHOWN_RATE)} wrong, nobody checks {unchecked} of "
        f"real answers if people check the rest; without people {share} are kept",
    )
    return figure


def _mean(measured: pl.DataFrame, promise: str, rate: float, n: int) -> float:
    rows = measured.filter(promise=promise, rate=rate, labels=n)
    return mean_over_sets(rows, "share")[0]


def rows() -> Iterator[Row]:
    LOGGER.setLevel(logging.ERROR)
    folder = named_folder()
    sets = read_real_sets(folder)
    measured: list[pl.DataFrame] = []
    seconds = cpu_seconds(lambda: measured.append(measure(sets)))
    yield Row(f"both promises on {len(sets)} sets", seconds)
    lines = table(measured[0])
    print("\n".join(lines))
    if folder is None:
        print("REAL names no folder of real answers: page and picture stay as they are.")
        return
    replace_table(PAGE, "promises", lines)
    with figure_style.applied():
        save_picture(draw(measured[0]), PICTURE, "Two promises")
