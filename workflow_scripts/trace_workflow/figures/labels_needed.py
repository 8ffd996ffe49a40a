"""How many labels do you need? Brier score and AUROC by the number of labelled answers."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_workflow.analyses.few_labels import ORACLE, SIZES
from trace_workflow.figures.panels import note_below
from trace_workflow.tables.few_labels import LABELS, NOTHING
from tracecal.estimators.estimator import PICKED, Entry
from tracecal.pages import figure_style as style

METRICS = {"brier": "Brier score ↓", "auroc": "AUROC ↑"}
MARKERS = {"log_trace_plus": "v", "log_ridge": "^", "stack_of_six": "D"}


class EstimatorLine(NamedTuple):
    """An estimator's label, look and kind of line."""

    label: str
    look: style.Look
    line: str


def draw(few_labels: pl.DataFrame, entries: Sequence[Entry]) -> Figure:
    """Two panels, from the analysis `few_labels`: the means over tasks."""
    means = few_labels.filter(pl.col("task").is_null())
    lines = _lines(entries)
    with style.applied():
        if means.is_empty():
            return style.sentence(NOTHING, style.TEXT_WIDTH, 1.5)
        figure = Figure(figsize=(style.TEXT_WIDTH, 3.4))
        for axes, letter, (metric, title) in zip(
            figure.subplots(1, 2), "ab", METRICS.items(), strict=True
        ):
            _draw_panel(axes, means.filter(metric=metric), lines)
            style.panel_title(axes, letter, title)
        measured = set(means["estimator"])
        keys = [
            style.key(f" {label}", look, line)
            for estimator, (label, look, line) in lines.items()
            if estimator in measured
        ]
        style.legend(figure, keys)
        style.message(figure, message(means, {id: line.label for id, line in lines.items()}))
    return figure


def message(means: pl.DataFrame, labels: Mapping[str, str]) -> str:
    """The figure's message: the best fit by Brier score with the fewest and the most labels."""
    rows = means.filter(pl.col("estimator") != ORACLE, metric="brier").drop_nulls("value")
    best = [
        rows.filter(labels=size).sort("value", "estimator").row(0, named=True)
        for size in sorted({rows["labels"].min(), rows["labels"].max()} - {None})
    ]
    return "Best Brier score: " + ", ".join(
        f"{labels[row['estimator']]} with {row['labels']} labels ({row['value']:.3f})"
        for row in best
    )


def _lines(entries: Sequence[Entry]) -> dict[str, EstimatorLine]:
    """By estimator its line: baselines in grey, the fits in colour."""
    lines = {}
    for entry in entries:
        marker = MARKERS.get(entry.id)
        look = style.TRACE._replace(marker=marker) if marker else style.style_of(entry)
        is_fit = marker or entry.id == "trace_plus"
        lines[entry.id] = EstimatorLine(entry.label, look, "-" if is_fit else "--")
    grey = style.OTHER._replace(color=style.MUTED)
    return lines | {
        PICKED: EstimatorLine(LABELS[PICKED], grey, "-"),
        ORACLE: EstimatorLine(LABELS[ORACLE], grey, ":"),
    }


def _draw_panel(axes: Axes, means: pl.DataFrame, lines: Mapping[str, EstimatorLine]) -> None:
    for estimator, (_, look, line) in lines.items():
        rows = means.filter(estimator=estimator).sort("labels")
        axes.plot(rows["labels"], rows["value"], ls=line, **style.point(look))
    sizes = [size for size in SIZES if size in set(means["labels"])]
    axes.set_xscale("log")
    axes.set_xticks(sizes, map(str, sizes))
    axes.minorticks_off()
    axes.grid(axis="y")
    note_below(axes, "labelled answers of a task")
