"""The model landscape: Brier against AUROC of every estimator, one panel per model."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from trace_workflow.figures import figure_style as style
from trace_workflow.figures import study_averages
from trace_workflow.tables.study_results import Labels
from tracecal.estimators.estimator import TRACE_PLUS, Entry

# Points further from the quartiles, in interquartile ranges, stand at the edge of their panel.
MAX_RANGES = 1.5
# Averages that differ by less are level: their order is chance.
LEVEL = 0.005
DOTTED = {"color": style.MUTED, "lw": 0.7, "ls": ":"}


class LandscapePoint(NamedTuple):
    """An estimator's averages on one model."""

    entry: Entry
    brier: float
    auroc: float


def draw(
    means: pl.DataFrame, entries: Sequence[Entry], models: Labels, tasks: Labels, study: Mapping
) -> Figure:
    """The figure; `study` names the models and the tasks."""
    rows = study_averages.select_models(means, entries, "cross", study)
    by_model, measured = study_averages.means_of(rows), set(rows["model"])
    panels = {model: _points(by_model, model, entries) for model in models if model in measured}
    n_columns = 1 if len(panels) == 1 else 2
    n_rows = math.ceil(len(panels) / n_columns)
    with style.applied():
        width = style.COLUMN_WIDTH if n_columns == 1 else style.TEXT_WIDTH
        figure = Figure(figsize=(width, 1.7 + 2.6 * n_rows))
        below = study_averages.describe_averages(means, entries, "cross", study, tasks, width=90)
        grid = figure.subplots(n_rows, n_columns, squeeze=False)
        are_beyond = [
            _draw_panel(axes, models[model], points)
            for axes, (model, points) in zip(grid.flat, panels.items(), strict=False)
        ]
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        families = style.family_keys(point.entry for points in panels.values() for point in points)
        keys = [
            *families,
            Line2D([], [], **DOTTED, label=f" Best non-TRACE (grey: within {LEVEL:g})"),
        ]
        if any(are_beyond):
            keys.append(style.key("Beyond the axes", style.OTHER, inside="white"))
        style.legend(figure, keys, below)
        style.message(figure, message(panels))
    return figure


def message(panels: Mapping[str, Sequence[LandscapePoint]]) -> str:
    """The figure's message: where TRACE+ is ahead of, level with or behind the best baseline."""
    gains: dict[str, list[float]] = {"Brier": [], "AUROC": []}
    for points in panels.values():
        plus = next((point for point in points if point.entry.id == TRACE_PLUS), None)
        best_brier, best_auroc = best_baselines(points)
        if plus is not None and best_brier is not None and best_auroc is not None:
            gains["Brier"].append(best_brier.brier - plus.brier)
            gains["AUROC"].append(plus.auroc - best_auroc.auroc)
    if not gains["Brier"]:
        return ""
    n_models = len(gains["Brier"])
    models = "one model" if n_models == 1 else f"{n_models} models"
    parts = [f"by {metric} {_places(values)}" for metric, values in gains.items()]
    return f"TRACE+ beside the best baseline on {models}: {'; '.join(parts)}"


def _places(gains: Sequence[float]) -> str:
    """How many gains are ahead, level and behind.

    >>> _places([0.02, 0.001, -0.004])
    'ahead on 1, level on 2'
    """
    ahead, behind = (sum(sign * gain > LEVEL for gain in gains) for sign in (1, -1))
    counts = {"ahead": ahead, "level": len(gains) - ahead - behind, "behind": behind}
    return ", ".join(f"{name} on {count}" for name, count in counts.items() if count)


def best_baselines(
    points: Sequence[LandscapePoint],
) -> tuple[LandscapePoint | None, LandscapePoint | None]:
    """The baselines with the best Brier and with the best AUROC."""
    baselines = [point for point in points if point.entry.role == "baseline"]
    return (
        min(baselines, key=lambda point: point.brier, default=None),
        max(baselines, key=lambda point: point.auroc, default=None),
    )


def limits(values: Sequence[float], included: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis: of the values without outliers, and of those `included` anyway.

    A reversed score, a slope say, would squeeze all others into a corner.
    """
    low, high = np.quantile(values, [0.25, 0.75])
    reach = MAX_RANGES * (high - low)
    inside = [value for value in values if low - reach <= value <= high + reach]
    inside += included
    margin = 0.12 * (max(inside) - min(inside)) or 0.01
    return min(inside) - margin, max(inside) + margin


def _points(
    means: study_averages.Means, model: str, entries: Sequence[Entry]
) -> list[LandscapePoint]:
    """The estimators whose two averages are defined."""
    points = []
    for entry in entries:
        brier, auroc = (means.get((model, entry.id, metric)) for metric in ("brier", "auroc"))
        if brier is not None and auroc is not None:
            points.append(LandscapePoint(entry, brier, auroc))
    return points


def _draw_panel(axes: Axes, label: str, points: Sequence[LandscapePoint]) -> bool:
    """Draw a model's points; return whether one stands at the edge, as it lies beyond the axes."""
    axes.set_title(label, pad=26)
    axes.set_xlabel("Brier ↓")
    axes.set_ylabel("AUROC ↑")
    if not points:
        return False
    by_brier, by_auroc = best_baselines(points)
    if by_brier and by_auroc:
        # Above the panel: next to the points, names hide some and seem to label others.
        names = f"best Brier: {by_brier.entry.label}\nbest AUROC: {by_auroc.entry.label}"
        above = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "bottom"}
        axes.annotate(names, (0, 1), (0, 2), fontsize=style.SMALL, color=style.MUTED, **above)
        for value, draw_line, draw_band in (
            (by_brier.brier, axes.axvline, axes.axvspan),
            (by_auroc.auroc, axes.axhline, axes.axhspan),
        ):
            draw_line(value, **DOTTED, zorder=1)
            draw_band(value - LEVEL, value + LEVEL, color=style.FAINT, lw=0, zorder=0)
    trace = [point for point in points if point.entry.role == "trace"]
    ends = [  # which include all points of TRACE and TRACE+
        limits([getattr(p, name) for p in points], [getattr(p, name) for p in trace])
        for name in ("brier", "auroc")
    ]
    is_beyond = False
    for point in points:
        look = style.style_of(point.entry)
        position = [np.clip(value, *end) for value, end in zip(point[1:], ends, strict=True)]
        is_inside = position == [*point[1:]]
        is_beyond = is_beyond or not is_inside
        edge = {"mec": "white", "mew": 0.4} if is_inside else {"mfc": "white", "mew": 1.0}
        axes.plot(*position, ls="", clip_on=False, zorder=look.order, **style.point(look), **edge)
    axes.set(xlim=ends[0], ylim=ends[1])
    axes.locator_params(nbins=5)
    return is_beyond
