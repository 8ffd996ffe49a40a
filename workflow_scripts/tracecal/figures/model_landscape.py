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
from tracecal.storage.files import read_parquet
from tracecal.tables import averages
from tracecal.tables.averages import COLUMNS, MISSING
from tracecal.tables.settings import Entry

Labels = Mapping[str, str]
CHANCE = 0.5


class Point(NamedTuple):
    entry: Entry
    brier: float
    auroc: float


def draw(means: str, estimators: Sequence, models: Labels, study: Mapping) -> Figure:
    """The figure, from a run's file of averages."""
    entries = [Entry(*fields) for fields in estimators]
    return model_landscape(read_parquet(means, COLUMNS), entries, models, study)


def model_landscape(
    means: pl.DataFrame, entries: Sequence[Entry], models: Labels, study: Mapping
) -> Figure:
    """The figure; `study` names the models and the tasks."""
    compared = [entry for entry in entries if entry.role in ("baseline", "trace")]
    selected = averages.select(means, compared, "cross", study)
    overall = averages.over_tasks(selected)
    panels = {m: points(overall, m, compared) for m in sorted(set(selected["model"]))}
    columns = {1: 1, 2: 2, 4: 2}.get(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    floor = _floor([point for found in panels.values() for point in found])
    with style.applied():
        figure = Figure(figsize=_size(columns, rows))
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axes, (model, found) in zip(grid.flat, panels.items(), strict=False):
            _panel(axes, models[model], found, floor)
        _share_axes(grid, len(panels))
        _legend(figure, [point.entry for found in panels.values() for point in found], floor)
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
    above = [point.auroc for point in found if point.auroc >= CHANCE]
    below = [point for point in found if point.auroc < CHANCE - 0.05]
    named = [point for point in found if point.entry.role == "trace"]
    few = len(below) <= len(found) / 4 and not any(point in below for point in named)
    return min(above) - 0.05 if below and above and few else None


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
        x, y = _drawn(point, floor)
        below = y != point.auroc
        axes.plot(
            x,
            y,
            look.marker,
            markersize=6 if point.entry.role == "trace" else 4.2,
            markerfacecolor="white" if below else look.color,
            markeredgecolor=look.color if below else "white",
            markeredgewidth=0.8 if below else 0.4,
            zorder=look.order,
        )
    axes.margins(0.12)
    axes.locator_params(axis="x", nbins=6, steps=[1, 2, 5, 10])
    axes.locator_params(axis="y", nbins=5)


def _drawn(point: Point, floor: float | None) -> tuple[float, float]:
    return point.brier, point.auroc if floor is None else max(point.auroc, floor)


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


def _legend(figure: Figure, entries: Sequence[Entry], floor: float | None) -> None:
    dotted = Line2D([], [], color=style.MUTED, lw=0.7, ls=":", label=" Best non-TRACE")
    keys = [*style.family_keys(entries), dotted]
    if floor is not None:
        hollow = {"marker": "o", "mfc": "white", "mec": style.MUTED}
        keys.append(Line2D([], [], ls="", label="Below the axis", **hollow))
    style.legend(figure, keys)
