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
from tracecal.apps import figure_style
from tracecal.estimators.entry import Entry

CHANCE = 0.5
STRIP = 0.05  # height, in AUROC, of the strip that stands for everything below the axis


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
    columns = {1: 1, 2: 2, 4: 2}.get(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    floor = _floor([point for points in panels.values() for point in points])
    with figure_style.applied():
        width = figure_style.COLUMN_WIDTH if columns == 1 else figure_style.TEXT_WIDTH
        height = 0.75 + 1.9 * rows + 0.35 * (columns == 1)
        figure = Figure(figsize=(width, height))
        below = settings.basis(means, compared, "cross", study, tasks, width=100)
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axes, (model, points) in zip(grid.flat, panels.items(), strict=False):
            _panel(axes, models[model], points, floor)
        _share_axes(grid, len(panels))
        if floor is not None:
            _strip(grid[0, 0], floor)
            for axes in grid.flat:
                axes.axhspan(floor - STRIP, floor, color=figure_style.FAINT, lw=0, zorder=0)
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


def _floor(points: Sequence[Point]) -> float | None:
    """The lower limit of the AUROC axis if only a few points lie far below chance, else None.

    A reversed score (a slope, say) would squeeze all others into a corner.
    """
    below = [point for point in points if point.auroc < CHANCE - 0.05]
    trace_below = any(point.entry.role == "trace" for point in below)
    if not below or trace_below or len(below) > len(points) / 4:
        return None
    lowest = min(point.auroc for point in points if point not in below)
    return math.floor((lowest - 0.01) / STRIP) * STRIP


def _panel(axes: Axes, label: str, points: Sequence[Point], floor: float | None) -> None:
    axes.set_title(label, pad=22)
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
    for point in points:
        look = figure_style.look(point.entry)
        edge = {"mec": "white", "mew": 0.4, "zorder": look.order}
        axes.plot(*_drawn(point, floor), ls="", **figure_style.point(look), **edge)
    axes.margins(x=0.08, y=0.12)
    axes.locator_params(axis="x", nbins=6, steps=[1, 2, 5, 10])
    axes.locator_params(axis="y", nbins=5)


def _drawn(point: Point, floor: float | None) -> tuple[float, float]:
    """Where a point is drawn: in the middle of the strip if it lies below the axis."""
    below = floor is not None and point.auroc < floor
    return point.brier, floor - STRIP / 2 if below else point.auroc


def _strip(axes: Axes, floor: float) -> None:
    """A strip without a scale below the axis, shared by all panels as their axes are."""
    axes.set_ylim(bottom=floor - STRIP)
    # A tick on the strip's edge would run into its name.
    ticks = [tick for tick in axes.get_yticks() if floor + STRIP / 2 < tick <= axes.get_ylim()[1]]
    labels = [f"{tick:.2f}" for tick in ticks]
    axes.set_yticks([floor - STRIP / 2, *ticks], [f"< {floor:.2f}", *labels])


def _share_axes(grid: np.ndarray, panels: int) -> None:
    """Label the outer axes, and hide the grid's empty places."""
    columns = grid.shape[1]
    for index, axes in enumerate(grid.flat):
        axes.set_visible(index < panels)
        if index % columns == 0:
            axes.set_ylabel("AUROC ↑")
        if index >= grid.size - columns:
            axes.set_xlabel("Brier ↓")
        if panels <= index + columns:
            axes.tick_params(labelbottom=True)
