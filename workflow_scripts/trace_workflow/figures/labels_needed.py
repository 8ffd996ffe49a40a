"""How many labels do fits need? Brier score by the number of labelled answers, and the differences
to TRACE+ with intervals, over the same tasks at each number.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_workflow.analyses.few_labels import ORACLE
from trace_workflow.figures import figure_style as style
from trace_workflow.tables.few_labels import LABELS, NOTHING
from tracecal.estimators.estimator import PICKED, TRACE_PLUS, Entry

METRIC = "brier"
SPACING = 0.1  # between estimators, per distance between two numbers of labels


class EstimatorLine(NamedTuple):
    """An estimator's label, look, kind of line, and what fills its marker ('' is its colour)."""

    label: str
    look: style.Look
    line: str
    inside: str = ""

    @property
    def marker(self) -> dict[str, object]:
        """Its marker, as Matplotlib's arguments."""
        return style.point(self.look) | ({"mfc": self.inside} if self.inside else {})


def draw(few_labels: pl.DataFrame, entries: Sequence[Entry]) -> Figure:
    """Two panels, from the analysis `few_labels`: the means over the tasks that have all sizes."""
    means = shared_means(few_labels)
    with style.applied():
        if means.is_empty():
            return style.sentence(NOTHING, style.TEXT_WIDTH, 1.5)
        measured = set(means["estimator"])
        lines = {id: line for id, line in _lines(entries).items() if id in measured}
        figure = Figure(figsize=(style.TEXT_WIDTH, 3.4))
        scores, differences = figure.subplots(1, 2)
        _draw_scores(scores, means, lines)
        style.panel_title(scores, "a", "Brier score ↓")
        _draw_differences(differences, means, lines)
        level = 100 * means["level"].max()
        style.panel_title(differences, "b", f"Minus TRACE+'s, {level:g} % interval")
        keys = [style.key(f" {each[0]}", *each[1:]) for each in lines.values()]
        style.legend(figure, keys)
        style.message(figure, message(means, {id: line.label for id, line in lines.items()}))
    return figure


def shared_means(few_labels: pl.DataFrame) -> pl.DataFrame:
    """The Brier scores' means over tasks, at the numbers of labels that all tasks have."""
    means = few_labels.filter(pl.col("task").is_null(), metric=METRIC)
    return means.filter(pl.col("tasks") == pl.col("tasks").max()).sort("labels")


def message(means: pl.DataFrame, labels: Mapping[str, str]) -> str:
    """The figure's message: the best fit with the fewest and the most labels, and whether its
    interval tells it from TRACE+.
    """
    rows = means.filter(pl.col("estimator") != ORACLE).drop_nulls("value")
    best = [
        rows.filter(labels=size).sort("value", "estimator").row(0, named=True)
        for size in sorted({rows["labels"].min(), rows["labels"].max()} - {None})
    ]
    return "Lowest Brier score: " + "; ".join(
        f"{labels[row['estimator']]} with {row['labels']} labels{_compared(row)}" for row in best
    )


def _compared(row: Mapping[str, Any]) -> str:
    """How an estimator compares with TRACE+, in brackets; nothing of TRACE+ itself."""
    if row["estimator"] == TRACE_PLUS or row["low"] is None:
        return ""
    return " (a tie with TRACE+)" if row["low"] <= 0 <= row["high"] else " (better than TRACE+)"


def _lines(entries: Sequence[Entry]) -> dict[str, EstimatorLine]:
    """By estimator its line: fits solid, single scores dashed, a family's further ones hollow."""
    lines: dict[str, EstimatorLine] = {}
    for entry in entries:
        is_fit = entry.id == TRACE_PLUS or entry.id in style.FITS
        look = style.style_of(entry)
        is_further = any(line.look == look for line in lines.values())
        inside = "white" if is_further else ""
        lines[entry.id] = EstimatorLine(entry.label, look, "-" if is_fit else "--", inside)
    grey = style.OTHER._replace(color=style.MUTED)
    return lines | {
        PICKED: EstimatorLine(LABELS[PICKED], grey, "-"),
        ORACLE: EstimatorLine(LABELS[ORACLE], grey._replace(marker="x"), ":"),
    }


def _draw_scores(axes: Axes, means: pl.DataFrame, lines: Mapping[str, EstimatorLine]) -> None:
    for estimator, line in lines.items():
        rows = means.filter(estimator=estimator)
        axes.plot(_places(means, rows), rows["value"], ls=line.line, **line.marker)
    _set_labels_axis(axes, means)


def _draw_differences(axes: Axes, means: pl.DataFrame, lines: Mapping[str, EstimatorLine]) -> None:
    """Differences to TRACE+ with their intervals, side by side at each number of labels."""
    axes.axhline(0, color=style.TRACE_PLUS.color, lw=0.9, zorder=1)
    compared = [id for id in lines if id not in (TRACE_PLUS, ORACLE)]
    for index, estimator in enumerate(compared):
        rows, line = means.filter(estimator=estimator).drop_nulls("low"), lines[estimator]
        shift = SPACING * (index - (len(compared) - 1) / 2)
        places = [place + shift for place in _places(means, rows)]
        axes.vlines(places, rows["low"], rows["high"], color=line.look.color, lw=1.0)
        axes.plot(places, rows["difference"], ls="", **line.marker)
    _set_labels_axis(axes, means)


def _places(means: pl.DataFrame, rows: pl.DataFrame) -> list[int]:
    sizes = means["labels"].unique().sort().to_list()
    return [sizes.index(size) for size in rows["labels"]]


def _set_labels_axis(axes: Axes, means: pl.DataFrame) -> None:
    sizes = means["labels"].unique().sort().to_list()
    axes.set_xticks(range(len(sizes)), map(str, sizes))
    axes.set_xlim(-0.5, len(sizes) - 0.5)
    axes.grid(axis="y")
    n_tasks = means["tasks"].max()
    over = "one task" if n_tasks == 1 else f"mean over {n_tasks} tasks"
    style.note_below(axes, f"labelled answers of a task, {over}")
