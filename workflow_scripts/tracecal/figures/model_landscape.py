"""The model landscape: Brier against AUROC of every estimator, one panel per model."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tracecal.figures import style
from tracecal.figures.labels import Label, place
from tracecal.tables import averages
from tracecal.tables.averages import MISSING
from tracecal.tables.settings import Entry

Labels = Mapping[str, str]
CHANCE = 0.5
STRIP = 0.05  # of AUROC: the height of what stands for all below the axis


class Point(NamedTuple):
    entry: Entry
    brier: float
    auroc: float


def draw(means: pl.DataFrame, entries: Sequence[Entry], models: Labels, study: Mapping) -> Figure:
    """The figure; `study` names the models and the tasks."""
    compared = [entry for entry in entries if entry.role in ("baseline", "trace")]
    selected = averages.select(means, compared, "cross", study)
    overall = averages.over_tasks(selected)
    present = set(selected["model"])
    panels = {m: points(overall, m, compared) for m in models if m in present}
    columns = {1: 1, 2: 2, 4: 2}.get(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    floor = _floor([point for found in panels.values() for point in found])
    with style.applied():
        figure = Figure(figsize=_size(columns, rows))
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axes, (model, found) in zip(grid.flat, panels.items(), strict=False):
            _panel(axes, models[model], found, floor)
        _share_axes(grid, len(panels))
        if floor is not None:
            _strip(grid[0, 0], floor)
            for axes in grid.flat:
                axes.axhspan(floor - STRIP, floor, color=style.FAINT, lw=0, zorder=0)
        dotted = Line2D([], [], color=style.MUTED, lw=0.7, ls=":", label=" Best non-TRACE")
        shown = style.family_keys(point.entry for found in panels.values() for point in found)
        style.legend(figure, [*shown, dotted])
        figure.draw_without_rendering()
        for axes, found in zip(grid.flat, panels.values(), strict=False):
            _name(axes, found, floor)
    return figure


def points(overall: averages.ModelAverages, model: str, entries: Sequence[Entry]) -> list[Point]:
    """The estimators whose two averages are defined."""
    found = [
        (e, *(overall.get((model, e.id, metric), MISSING).mean for metric in ("brier", "auroc")))
        for e in entries
    ]
    return [Point(*point) for point in found if None not in point]


def best_baselines(found: Sequence[Point]) -> tuple[Point | None, Point | None]:
    """The baselines with the best Brier and with the best AUROC."""
    baselines = [point for point in found if point.entry.role == "baseline"]
    return (
        min(baselines, key=lambda point: point.brier, default=None),
        max(baselines, key=lambda point: point.auroc, default=None),
    )


def _floor(found: Sequence[Point]) -> float | None:
    """Where the AUROC axis ends if only a few points lie far below chance, else None.

    A reversed score (a slope, say) would squeeze all others into a corner.
    """
    below = [point for point in found if point.auroc < CHANCE - 0.05]
    named = [point for point in found if point.entry.role == "trace"]
    few = len(below) <= len(found) / 4 and not any(point in below for point in named)
    if not below or not few:
        return None
    lowest = min(point.auroc for point in found if point not in below)
    return math.floor((lowest - 0.01) / STRIP) * STRIP


def _size(columns: int, rows: int) -> tuple[float, float]:
    width = style.COLUMN_WIDTH if columns == 1 else style.TEXT_WIDTH
    return width, 0.75 + 1.65 * rows + 0.35 * (columns == 1)


def _panel(axes: Axes, label: str, found: Sequence[Point], floor: float | None) -> None:
    axes.set_title(label)
    by_brier, by_auroc = best_baselines(found)
    if by_brier and by_auroc:
        axes.axvline(by_brier.brier, color=style.MUTED, lw=0.7, ls=":", zorder=1)
        axes.axhline(by_auroc.auroc, color=style.MUTED, lw=0.7, ls=":", zorder=1)
    for point in found:
        look = style.look(point.entry)
        edge = {"mec": "white", "mew": 0.4, "zorder": look.order}
        axes.plot(*_drawn(point, floor), ls="", **style.point(look), **edge)
    axes.margins(x=0.3, y=0.12)  # room for a label beside the outermost point
    axes.locator_params(axis="x", nbins=6, steps=[1, 2, 5, 10])
    axes.locator_params(axis="y", nbins=5)


def _drawn(point: Point, floor: float | None) -> tuple[float, float]:
    """Where a point stands: in the middle of the strip where it is below the axis."""
    below = floor is not None and point.auroc < floor
    return point.brier, floor - STRIP / 2 if below else point.auroc


def _strip(axes: Axes, floor: float) -> None:
    """Below the axis, apart from it, a strip without a scale; panels share it as their axes."""
    axes.set_ylim(bottom=floor - STRIP)
    # A tick on the strip's edge would run into its name.
    ticks = [tick for tick in axes.get_yticks() if floor + STRIP / 2 < tick <= axes.get_ylim()[1]]
    labels = [f"{tick:.2f}" for tick in ticks]
    axes.set_yticks([floor - STRIP / 2, *ticks], [f"< {floor:.2f}", *labels])


def _share_axes(grid: np.ndarray, panels: int) -> None:
    """Name the outer axes, and drop the grid's empty places."""
    columns = grid.shape[1]
    for index, axes in enumerate(grid.flat):
        axes.set_visible(index < panels)
        if index % columns == 0:
            axes.set_ylabel("AUROC ↑")
        if index >= grid.size - columns:
            axes.set_xlabel("Brier ↓")
        if panels <= index + columns:
            axes.tick_params(labelbottom=True)


def _name(axes: Axes, found: Sequence[Point], floor: float | None) -> None:
    named = [point for point in found if point.entry.role == "trace"]
    baselines = [point for point in dict.fromkeys(best_baselines(found)) if point]
    labels = [
        Label(*_drawn(p, floor), p.entry.label, style.look(p.entry).text, p.entry.role == "trace")
        for p in named + baselines
    ]
    place(axes, labels, [_drawn(point, floor) for point in found])
