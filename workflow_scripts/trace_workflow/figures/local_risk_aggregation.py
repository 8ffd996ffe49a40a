"""Risk of selected answers token by token, and their mean risk against the local peak."""

from collections.abc import Iterator

import numpy as np
import polars as pl
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from trace_workflow.figures import figure_style as style
from tracecal.estimators.features import WINDOW

HEIGHT, ROW = 1.75, 0.058  # inches: without rows, and of a row
# Without white itself, which turns dark where the page around the figure is dark.
GREYS = ListedColormap(colormaps["Greys"](np.linspace(0.02, 1, 256)), "Greys")
COLORS = {False: colormaps["YlOrRd"], True: GREYS}
KINDS = {False: "wrong", True: "correct"}
MEAN, PEAK = style.FAMILIES["entropy"], style.LOCAL_PEAK
NOTHING = "No answer in the main study has\na prominent peak of entropy."


def draw(selected: pl.DataFrame) -> Figure:
    """Two panels with one row per answer of `trace_workflow.analyses.local_risk`.

    Wrong answers stand above, in colour, correct ones below, in grey, early peaks first.
    """
    answers = selected.sort("correct", "peak_start", "task", "example_id")
    with style.applied():
        if answers.is_empty():
            return style.sentence(NOTHING, style.COLUMN_WIDTH, 2 * HEIGHT)
        figure = Figure(figsize=(style.TEXT_WIDTH, HEIGHT + ROW * answers.height))
        tokens, scores = figure.subplots(1, 2, sharey=True, width_ratios=[1.5, 1])
        _draw_heat_map(figure, tokens, answers)
        _draw_dumbbells(scores, answers)
        style.panel_title(tokens, "a", "Entropy, nats")
        style.panel_title(scores, "b", "Mean, peak")
        style.legend(figure, [style.key("Mean", MEAN), style.key("Local peak", PEAK)])
        style.message(figure, message(answers))
    return figure


def message(answers: pl.DataFrame) -> str:
    """The figure's message: the medians of mean and local peak over the answers drawn."""
    mean, peak = (answers[name].median() for name in ("mean_risk", "local_peak"))
    return (
        f"A few dark tokens in each answer, which an average hides: {peak:.1f} nats in the framed "
        f"window, {mean:.1f} over all tokens (medians)"
    )


def _draw_heat_map(figure: Figure, axes: Axes, answers: pl.DataFrame) -> None:
    longest = answers["entropy"].list.len().max()
    grid = np.full((answers.height, longest), np.nan)
    for row, entropy in enumerate(answers["entropy"]):
        grid[row, : len(entropy)] = entropy
    axes.patch.set(hatch="//////", ec=style.FAINT)
    columns, rows = np.arange(longest + 1) + 0.5, np.arange(answers.height + 1) - 0.5
    scale = {"vmin": 0, "vmax": np.nanmax(grid), "edgecolors": "face", "lw": 0.2}
    for first, end, correct in _blocks(answers):
        block_rows, color = rows[first : end + 1], COLORS[correct]
        mesh = axes.pcolormesh(columns, block_rows, grid[first:end], cmap=color, **scale)
        bar = figure.colorbar(mesh, ax=axes, location="top", aspect=30, pad=0.01)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labeltop=first == 0, top=first == 0)
    for row, start in enumerate(answers["peak_start"]):
        box = Rectangle((start + 0.5, row - 0.5), WINDOW, 1, fill=False, ec="black", lw=0.6)
        axes.add_patch(box)
    axes.set_ylim(answers.height - 0.5, -0.5)
    middles = [(first + end - 1) / 2 for first, end, _ in _blocks(answers)]
    names = [
        f"{end - first} of {answers['eligible'][first]} eligible\n{KINDS[correct]} answers"
        for first, end, correct in _blocks(answers)
    ]
    axes.set_yticks(middles, names, rotation=90, va="center", ha="center", ma="center")
    axes.tick_params(axis="y", length=0, pad=15)
    axes.set_xlabel("Token")


def _draw_dumbbells(axes: Axes, answers: pl.DataFrame) -> None:
    rows = range(answers.height)
    means, peaks = answers["mean_risk"].to_list(), answers["local_peak"].to_list()
    axes.hlines(rows, means, peaks, color=style.FAINT, lw=1.5, zorder=2)
    for first, end, correct in _blocks(answers):
        for values, look in ((means, MEAN), (peaks, PEAK)):
            point = style.point(look._replace(color=style.MUTED) if correct else look)
            axes.plot(values[first:end], rows[first:end], ls="", mew=0, zorder=3, **point)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(left=0)
    axes.set_xlabel("Entropy, nats")


def _blocks(answers: pl.DataFrame) -> Iterator[tuple[int, int, bool]]:
    """Of wrong and of correct answers: first row, one past the last, and whether correct."""
    n_wrong = answers.height - int(answers["correct"].sum())
    for first, end, correct in ((0, n_wrong, False), (n_wrong, answers.height, True)):
        if first < end:
            yield first, end, correct
