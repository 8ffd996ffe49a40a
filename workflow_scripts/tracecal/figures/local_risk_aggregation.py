"""Where the risk of wrong answers lies: token by token, and the mean beside the local peak."""

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tracecal.figures import style
from tracecal.operate.operators import WINDOW

HEIGHT = 2.7
COLORS = "YlOrRd"
MEAN = style.FAMILIES["entropy"]
PEAK = style.LOCAL_PEAK
NOTHING = "No wrong answer of the main study has\nentropies with a peak that stands out."


def draw(selected: pl.DataFrame) -> Figure:
    """Two panels with one row per answer of `tracecal.analyse.local_risk`, early peaks first."""
    ordered = selected.sort("peak_start", "task", "example_id")
    with style.applied():
        if ordered.is_empty():
            return style.sentence(NOTHING, style.COLUMN_WIDTH, HEIGHT)
        figure = Figure(figsize=(style.COLUMN_WIDTH, HEIGHT))
        tokens, scores = figure.subplots(1, 2, sharey=True, width_ratios=[1.5, 1])
        _heat_map(figure, tokens, ordered)
        _dumbbells(scores, ordered)
        style.panel_title(tokens, "a", "Entropy, nats")
        style.panel_title(scores, "b", "Mean and peak")
        style.legend(figure, [style.key("Mean", MEAN), style.key("Local peak", PEAK)])
    return figure


def _heat_map(figure: Figure, axes: Axes, ordered: pl.DataFrame) -> None:
    longest = ordered["entropy"].list.len().max()
    grid = np.full((ordered.height, longest), np.nan)
    for row, entropy in enumerate(ordered["entropy"]):
        grid[row, : len(entropy)] = entropy
    axes.patch.set(hatch="//////", ec=style.FAINT)
    edges = np.arange(longest + 1) + 0.5, np.arange(ordered.height + 1) - 0.5
    mesh = axes.pcolormesh(*edges, grid, cmap=COLORS, vmin=0, edgecolors="face", lw=0.2)
    for row, start in enumerate(ordered["peak_start"]):
        box = Rectangle((start + 0.5, row - 0.5), WINDOW, 1, fill=False, ec=style.INK, lw=0.5)
        axes.add_patch(box)
    axes.set_ylim(ordered.height - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_xlabel("Token")
    axes.set_ylabel(f"{ordered.height} of {ordered['incorrect'][0]} wrong answers")
    bar = figure.colorbar(mesh, ax=axes, location="top", aspect=30, pad=0.01)
    bar.outline.set_visible(False)


def _dumbbells(axes: Axes, ordered: pl.DataFrame) -> None:
    rows = range(ordered.height)
    means, peaks = ordered["mean_risk"].to_list(), ordered["local_peak"].to_list()
    axes.hlines(rows, means, peaks, color=style.FAINT, lw=1.5, zorder=2)
    for values, look in ((means, MEAN), (peaks, PEAK)):
        axes.plot(values, rows, ls="", mew=0, zorder=3, **style.point(look))
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(left=0)
    axes.set_xlabel("Entropy, nats")
