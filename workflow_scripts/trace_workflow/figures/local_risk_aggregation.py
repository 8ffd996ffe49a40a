"""Risk of selected answers token by token, and their mean risk against the local peak."""

from collections.abc import Iterator

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tracecal.features.operators import WINDOW
from tracecal.pages import figure_style

HEIGHT, ROW = 1.3, 0.058  # inches: without rows, and of a row
COLORS = {False: "YlOrRd", True: "Greys"}
MEAN = figure_style.FAMILIES["entropy"]
PEAK = figure_style.LOCAL_PEAK
NOTHING = "No answer in the main study has\na prominent peak of entropy."


def draw(selected: pl.DataFrame) -> Figure:
    """Two panels with one row per answer of `trace_workflow.analyses.local_risk`.

    Wrong answers stand above, in colour, correct ones below, in grey, early peaks first.
    """
    ordered = selected.sort("correct", "peak_start", "task", "example_id")
    with figure_style.applied():
        if ordered.is_empty():
            return figure_style.sentence(NOTHING, figure_style.COLUMN_WIDTH, 2 * HEIGHT)
        figure = Figure(figsize=(figure_style.TEXT_WIDTH, HEIGHT + ROW * ordered.height))
        tokens, scores = figure.subplots(1, 2, sharey=True, width_ratios=[1.5, 1])
        _heat_map(figure, tokens, ordered)
        _dumbbells(scores, ordered)
        figure_style.panel_title(tokens, "a", "Entropy, nats")
        figure_style.panel_title(scores, "b", "Mean, peak")
        figure_style.legend(
            figure, [figure_style.key("Mean", MEAN), figure_style.key("Local peak", PEAK)]
        )
    return figure


def _heat_map(figure: Figure, axes: Axes, ordered: pl.DataFrame) -> None:
    longest = ordered["entropy"].list.len().max()
    grid = np.full((ordered.height, longest), np.nan)
    for row, entropy in enumerate(ordered["entropy"]):
        grid[row, : len(entropy)] = entropy
    axes.patch.set(hatch="//////", ec=figure_style.FAINT)
    edges = np.arange(longest + 1) + 0.5, np.arange(ordered.height + 1) - 0.5
    scale = {"vmin": 0, "vmax": np.nanmax(grid), "edgecolors": "face", "lw": 0.2}
    for first, last, correct in _blocks(ordered):
        rows = edges[1][first : last + 1]
        mesh = axes.pcolormesh(edges[0], rows, grid[first:last], cmap=COLORS[correct], **scale)
        bar = figure.colorbar(mesh, ax=axes, location="top", aspect=30, pad=0.01)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labeltop=first == 0, top=first == 0)
    for row, start in enumerate(ordered["peak_start"]):
        box = Rectangle((start + 0.5, row - 0.5), WINDOW, 1, fill=False, ec="black", lw=0.6)
        axes.add_patch(box)
    axes.set_ylim(ordered.height - 0.5, -0.5)
    middles = [(first + last - 1) / 2 for first, last, _ in _blocks(ordered)]
    kinds = {False: "wrong", True: "correct"}
    names = [
        f"{last - first} of {ordered['eligible'][first]} eligible\n{kinds[correct]} answers"
        for first, last, correct in _blocks(ordered)
    ]
    axes.set_yticks(middles, names, rotation=90, va="center", ha="center", ma="center")
    axes.tick_params(axis="y", length=0, pad=9)
    axes.set_xlabel("Token")


def _blocks(ordered: pl.DataFrame) -> Iterator[tuple[int, int, bool]]:
    """For wrong and for correct answers: first row, one past the last, and whether correct."""
    wrong = ordered.height - int(ordered["correct"].sum())
    for first, last, correct in ((0, wrong, False), (wrong, ordered.height, True)):
        if first < last:
            yield first, last, correct


def _dumbbells(axes: Axes, ordered: pl.DataFrame) -> None:
    rows = range(ordered.height)
    means, peaks = ordered["mean_risk"].to_list(), ordered["local_peak"].to_list()
    axes.hlines(rows, means, peaks, color=figure_style.FAINT, lw=1.5, zorder=2)
    for first, last, correct in _blocks(ordered):
        for values, look in ((means, MEAN), (peaks, PEAK)):
            drawn = look._replace(color=figure_style.MUTED) if correct else look
            shown = values[first:last], rows[first:last]
            axes.plot(*shown, ls="", mew=0, zorder=3, **figure_style.point(drawn))
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(left=0)
    axes.set_xlabel("Entropy, nats")
