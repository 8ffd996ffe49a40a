"""The model landscape: Brier against AUROC of every estimator, one panel per model."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from trace_workflow.tables import settings
from trace_workflow.tables.settings import MISSING, Labels
from tracecal.estimators.entry import Entry
from tracecal.pages import figure_style

# Points beyond so many interquartile ranges from the quartiles stand at the edge of their panel.
FAR = 1.5


class Point(NamedTuple):
    entry: Entry
    brier: float
    auroc: float


def draw(
    means: pl.DataFrame,
    entries: Sequence[Entry],
    models: Labels,
    tasks: Labels,
    study: Mapping,
) -> Figure:
    """The figure; `study` names the models and the tasks."""
    compared = [entry for entry in entries if entry.role in ("baseline", "trace")]
    selected = settings.select(means, compared, "cross", study)
    overall = settings.over_tasks(selected)
    present = set(selected["model"])
    panels = {m: _points(overall, m, compared) for m in models if m in present}
    columns = {1: 1}.get(len(panels), 2)
    rows = math.ceil(len(panels) / columns)
    with figure_style.applied():
        width = figure_style.COLUMN_WIDTH if columns == 1 else figure_style.TEXT_WIDTH
        figure = Figure(figsize=(width, 1.3 + 2.6 * rows))
        below = settings.basis(means, compared, "cross", study, tasks, width=90)
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes, (model, points) in zip(grid.flat, panels.items(), strict=False):
            _panel(axes, models[model], points)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        dotted = Line2D([], [], color=figure_style.MUTED, lw=0.7, ls=":", label=" Best non-TRACE")
        shown = figure_style.family_keys(
            point.entry for points in panels.values() for point in points
        )
        figure_style.legend(figure, [*shown, dotted], below)
    return figure


def _points(overall: settings.ModelAverages, model: str, entries: Sequence[Entry]) -> list[Point]:
    """The estimators whose two averages are defined."""
    estimators = [
        (e, *(overall.get((model, e.id, metric), MISSING).mean for metric in ("brier", "auroc")))
        for e in entries
    ]
    return [Point(*values) for values in estimators if None not in values]


def best_baselines(points: Sequence[Point]) -> tuple[Point | None, Point | None]:
    """The baselines with the best Brier and with the best AUROC."""
    baselines = [point for point in points if point.entry.role == "baseline"]
    return (
        min(baselines, key=lambda point: point.brier, default=None),
        max(baselines, key=lambda point: point.auroc, default=None),
    )


def limits(values: Sequence[float], always: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis: of all values but those far from most, and of those `always` shown.

    A reversed score, a slope say, would squeeze all others into a corner.
    """
    low, high = np.quantile(values, [0.25, 0.75])
    reach = FAR * (high - low)
    near = [value for value in values if low - reach <= value <= high + reach]
    shown = [*near, *always]
    margin = 0.12 * (max(shown) - min(shown)) or 0.01
    return min(shown) - margin, max(shown) + margin


def _panel(axes: Axes, label: str, points: Sequence[Point]) -> None:
    axes.set_title(label, pad=26)
    axes.set_xlabel("Brier ↓")
    axes.set_ylabel("AUROC ↑")
    if not points:
        return
    by_brier, by_auroc = best_baselines(points)
    if by_brier and by_auroc:
        # Above the panel: next to the points, names hide some and seem to label others.
        named = f"best Brier: {by_brier.entry.label}\nbest AUROC: {by_auroc.entry.label}"
        where = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "bottom"}
        axes.annotate(
            named, (0, 1), (0, 2), fontsize=figure_style.SMALL, color=figure_style.MUTED, **where
        )
        axes.axvline(by_brier.brier, color=figure_style.MUTED, lw=0.7, ls=":", zorder=1)
        axes.axhline(by_auroc.auroc, color=figure_style.MUTED, lw=0.7, ls=":", zorder=1)
    own = [point for point in points if point.entry.role == "trace"]
    ends = [
        limits([getattr(p, name) for p in points], [getattr(p, name) for p in own])
        for name in ("brier", "auroc")
    ]
    for point in points:
        look = figure_style.style_of(point.entry)
        place = [np.clip(value, *end) for value, end in zip(point[1:], ends, strict=True)]
        inside = place == [*point[1:]]
        edge = {"mec": "white", "mew": 0.4} if inside else {"mfc": "white", "mew": 1.0}
        axes.plot(
            *place, ls="", clip_on=False, zorder=look.order, **figure_style.point(look), **edge
        )
    axes.set(xlim=ends[0], ylim=ends[1])
    axes.locator_params(nbins=5)
