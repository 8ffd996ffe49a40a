"""How many labels do you need? Brier score and AUROC by the number of labelled answers."""

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_workflow.analyses.few_labels import ORACLE, SIZES
from trace_workflow.tables.few_labels import LABELS, NOTHING
from tracecal.estimators.entry import PICKED, Entry
from tracecal.pages import figure_style

METRICS = {"brier": "Brier score ↓", "auroc": "AUROC ↑"}
MARKERS = {"log_trace_plus": "v", "log_ridge": "^", "stack_of_six": "D"}


def draw(found: pl.DataFrame, entries: Sequence[Entry]) -> Figure:
    """Two panels, from the analysis `few_labels`: the means over tasks."""
    means = found.filter(pl.col("task").is_null())
    lines = _lines(entries)
    with figure_style.applied():
        if means.is_empty():
            return figure_style.sentence(NOTHING, figure_style.TEXT_WIDTH, 1.5)
        figure = Figure(figsize=(figure_style.TEXT_WIDTH, 3.4))
        for axes, letter, (metric, title) in zip(
            figure.subplots(1, 2), "ab", METRICS.items(), strict=True
        ):
            _panel(axes, means.filter(metric=metric), lines)
            figure_style.panel_title(axes, letter, title)
        shown = set(means["estimator"])
        keys = [
            figure_style.key(f" {label}", look, line)
            for name, (label, look, line) in lines.items()
            if name in shown
        ]
        figure_style.legend(figure, keys)
        figure_style.message(figure, least(means, {name: line[0] for name, line in lines.items()}))
    return figure


def least(means: pl.DataFrame, labels: dict[str, str]) -> str:
    """The figure's message: the best fit by Brier score with the fewest and the most labels."""
    rows = means.filter(pl.col("estimator") != ORACLE, metric="brier").drop_nulls("value")
    ends = [
        rows.filter(labels=size).sort("value", "estimator").row(0, named=True)
        for size in sorted({rows["labels"].min(), rows["labels"].max()} - {None})
    ]
    return "Best Brier score: " + ", ".join(
        f"{labels[row['estimator']]} with {row['labels']} labels ({row['value']:.3f})"
        for row in ends
    )


def _lines(entries: Sequence[Entry]) -> dict[str, tuple[str, figure_style.Look, str]]:
    """By estimator its label, look and kind of line: baselines in grey, the fits in colour."""
    lines = {}
    for entry in entries:
        marker = MARKERS.get(entry.id)
        look = (
            figure_style.TRACE._replace(marker=marker) if marker else figure_style.style_of(entry)
        )
        lines[entry.id] = (entry.label, look, "-" if marker or entry.id == "trace_plus" else "--")
    grey = figure_style.OTHER._replace(color=figure_style.MUTED)
    return lines | {PICKED: (LABELS[PICKED], grey, "-"), ORACLE: (LABELS[ORACLE], grey, ":")}


def _panel(
    axes: Axes, rows: pl.DataFrame, lines: dict[str, tuple[str, figure_style.Look, str]]
) -> None:
    for name, (_, look, line) in lines.items():
        own = rows.filter(estimator=name).sort("labels")
        axes.plot(own["labels"], own["value"], ls=line, **figure_style.point(look))
    present = [size for size in SIZES if size in set(rows["labels"])]
    axes.set_xscale("log")
    axes.set_xticks(present, map(str, present))
    axes.minorticks_off()
    axes.grid(axis="y")
    axes.set_xlabel(
        "labelled answers of a task", fontsize=figure_style.SMALL, color=figure_style.MUTED
    )
