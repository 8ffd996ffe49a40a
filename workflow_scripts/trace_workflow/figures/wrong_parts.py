"""How often risk peaks in a wrong part of an answer, compared with pointers without a trace."""

from collections.abc import Mapping

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_workflow.analyses.localisation import CHANCE, POINTERS
from trace_workflow.figures import figure_style as style
from trace_workflow.tables.parts import POINTER_NAMES
from trace_workflow.tables.study_results import rows_by

ROW, HEIGHT = 0.24, 1.3  # inches: for each pointer, and for the rest of a panel
NOTHING = "No answer holds right and wrong parts."
NO_TRACE = ("failing_name", *CHANCE)  # pointers that need no trace


def draw(pointed: pl.DataFrame, models: Mapping[str, str], tasks: Mapping[str, str]) -> Figure:
    """A panel per pair, from the analysis `localisation`."""
    pairs = pointed.select("model", "task").unique().sort("model", "task").rows()
    with style.applied():
        if not pointed["mixed"].sum():
            return style.sentence(NOTHING, style.COLUMN_WIDTH, HEIGHT)
        n_pointers = len({*POINTERS, *CHANCE})
        size = style.TEXT_WIDTH, len(pairs) * (HEIGHT + ROW * n_pointers)
        figure = Figure(figsize=size)
        panels = figure.subplots(len(pairs), 1, squeeze=False)[:, 0]
        for axes, (model, task) in zip(panels, pairs, strict=True):
            _draw_pointers(axes, pointed.filter(model=model, task=task))
            axes.set_title(f"{models[model]}, {tasks[task]}")
        look = style.OTHER._replace(color=style.INK, marker="o")
        keys = [style.key(" from the trace", look, "-")]
        keys += [style.key(" without a trace", look._replace(color=style.MUTED), "-", "white")]
        style.legend(figure, keys)
        style.message(figure, message(pointed))
    return figure


def message(pointed: pl.DataFrame) -> str:
    """The figure's message, on the first pair: the window of peak risk and its strongest rival."""
    rows = pointed.drop_nulls("value").sort("model", "task")
    model, task = rows.select("model", "task").row(0)
    rows = rows.filter(model=model, task=task)
    shares = dict(rows.select("pointer", "value").iter_rows())
    rivals = [pointer for pointer in NO_TRACE if pointer in shares]
    parts = []
    if "window" in shares:
        parts.append(f"risk peaks in a wrong part in {shares['window']:.0%} of answers")
    if rivals:
        best = max(rivals, key=shares.__getitem__)
        name = POINTER_NAMES[best].removeprefix("Chance: ").lower()
        parts.append(f"{name} is wrong in {shares[best]:.0%}")
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


def _draw_pointers(axes: Axes, rows: pl.DataFrame) -> None:
    """How often each pointer lies in a wrong part, best first; hollow where it needs no trace."""
    by_pointer = rows_by(rows, "pointer")
    pointers = sorted(
        dict.fromkeys((*POINTERS, *CHANCE)),
        key=lambda pointer: -(by_pointer[pointer,]["value"] or 0),
    )
    for height, pointer in enumerate(pointers):
        row = by_pointer[pointer,]
        if row["value"] is None:
            continue
        color = style.MUTED if pointer in NO_TRACE else style.INK
        if row["low"] is not None:
            axes.hlines(height, row["low"], row["high"], color=color, lw=1.2)
        fill = "white" if pointer in NO_TRACE else color
        axes.plot(row["value"], height, "o", ms=4, color=color, mfc=fill)
    n_pointers = len(pointers)
    axes.set_yticks(range(n_pointers), [POINTER_NAMES[pointer] for pointer in pointers])
    axes.set_ylim(n_pointers - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.grid(axis="x")
    axes.set_xlabel(
        f"share of answers in which it lies in a wrong part (n = {rows['mixed'].max()} answers)"
    )
