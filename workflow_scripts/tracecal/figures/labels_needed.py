"""How many labels do you need? Brier score and AUROC by the number of labelled answers."""

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracecal.analyse.few_labels import ORACLE, SIZES
from tracecal.calibrate.picked import PICKED
from tracecal.figures import style
from tracecal.tables.few_labels import LABELS, NOTHING
from tracecal.tables.settings import Entry

METRICS = {"brier": "Brier score, lower is better", "auroc": "AUROC, higher is better"}
STACK = "stack"


def draw(found: pl.DataFrame, entries: Sequence[Entry]) -> Figure:
    """Two panels, from the analysis `few_labels`: the means over tasks."""
    means = found.filter(pl.col("task").is_null())
    lines = _lines(entries)
    with style.applied():
        if means.is_empty():
            return style.sentence(NOTHING, style.TEXT_WIDTH, 1.5)
        figure = Figure(figsize=(style.TEXT_WIDTH, 2.6))
        for axes, letter, (metric, title) in zip(
            figure.subplots(1, 2), "ab", METRICS.items(), strict=True
        ):
            _panel(axes, means.filter(metric=metric), lines)
            style.panel_title(axes, letter, title)
        shown = set(means["estimator"])
        keys = [
            style.key(f" {label}", look, line)
            for name, (label, look, line) in lines.items()
            if name in shown
        ]
        style.legend(figure, keys)
    return figure


def _lines(entries: Sequence[Entry]) -> dict[str, tuple[str, style.Look, str]]:
    """By estimator its label, look and kind of line: baselines in grey, the fits in colour."""
    lines = {}
    for entry in entries:
        few = entry.role == "variant"
        look = (
            style.TRACE._replace(marker="D" if entry.id == STACK else "v")
            if few
            else style.look(entry)
        )
        lines[entry.id] = (entry.label, look, "-" if entry.id in ("trace_plus", STACK) else "--")
    grey = style.OTHER._replace(color=style.MUTED)
    return lines | {PICKED: (LABELS[PICKED], grey, "-"), ORACLE: (LABELS[ORACLE], grey, ":")}


def _panel(axes: Axes, rows: pl.DataFrame, lines: dict[str, tuple[str, style.Look, str]]) -> None:
    for name, (_, look, line) in lines.items():
        own = rows.filter(estimator=name).sort("labels")
        axes.plot(own["labels"], own["value"], ls=line, **style.point(look))
    present = [size for size in SIZES if size in set(rows["labels"])]
    axes.set_xscale("log")
    axes.set_xticks(present, map(str, present))
    axes.minorticks_off()
    axes.grid(axis="y")
    axes.set_xlabel("labelled answers of a task", fontsize=style.SMALL, color=style.MUTED)
