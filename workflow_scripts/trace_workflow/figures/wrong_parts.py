"""Whether risk lies where an answer is wrong, and what reviewing the least certain parts finds."""

from collections.abc import Mapping, Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_workflow.analyses.localisation import CHANCE, POINTERS
from trace_workflow.analyses.part_scores import PART, REVIEWED, WHOLE
from trace_workflow.tables.localisation import NAMES
from tracecal.estimators.entry import Entry
from tracecal.pages import figure_style

ROW, HEIGHT = 0.24, 1.6  # inches: of a pointer, and besides
NOTHING = "No answer holds right and wrong parts."
CALLED = {
    "failing_name": "the part that usually fails",
    "max_surprisal": "the part with the most surprising token",
    "max_entropy": "the part with the most uncertain token",
    "random_window": "a random window",
    "random_token": "a random token",
    "random_part": "a random part",
}
# The estimators whose reviews are drawn, by their part's and by the whole answer's score
REVIEWS = ("seq_logp", "trace", "trace_plus")


def draw(
    pointed: pl.DataFrame,
    scores: pl.DataFrame,
    entries: Sequence[Entry],
    models: Mapping[str, str],
    tasks: Mapping[str, str],
) -> Figure:
    """A row of two panels for each model and task, from `trace_workflow.analyses.localisation` and
    `part_scores`.
    """
    pairs = pointed.select("model", "task").unique().sort("model", "task").rows()
    with figure_style.applied():
        if not pointed["mixed"].sum():
            return figure_style.sentence(NOTHING, figure_style.COLUMN_WIDTH, HEIGHT)
        rows = len(POINTERS) + len(CHANCE)
        size = figure_style.TEXT_WIDTH, len(pairs) * (HEIGHT + ROW * rows)
        figure = Figure(figsize=size)
        panels = figure.subplots(len(pairs), 2, squeeze=False, width_ratios=[1, 1.15])
        chosen = [entry for entry in entries if entry.id in REVIEWS]
        for (where, review), (model, task) in zip(panels, pairs, strict=True):
            own = {"model": model, "task": task}
            name = f"{models[model]},\n{tasks[task]}"
            _pointers(where, pointed.filter(**own))
            _reviews(review, scores.filter(**own), chosen)
            figure_style.panel_title(where, "a", name)
            figure_style.panel_title(review, "b", "Parts, least certain first")
        lines = [
            figure_style.key(entry.label, figure_style.style_of(entry), "-") for entry in chosen
        ]
        hollow = [
            figure_style.key(
                f"{entry.label}, whole answer", figure_style.style_of(entry), ":", "white"
            )
            for entry in chosen
            if not scores.filter(estimator=entry.id, scored=WHOLE).is_empty()
        ]
        figure_style.legend(figure, lines + hollow)
        figure_style.message(figure, first(pointed))
    return figure


def first(pointed: pl.DataFrame) -> str:
    """The figure's message, on the first pair: the best pointer and the window of peak risk."""
    rows = pointed.drop_nulls("value").sort("model", "task")
    pair = rows.select("model", "task").row(0)
    values = dict(rows.filter(model=pair[0], task=pair[1]).select("pointer", "value").iter_rows())
    best = max(values, key=values.__getitem__)
    peak = values.get("window")
    if peak is None or best == "window":
        words = f"Risk peaks in a wrong part of {values[best]:.0%} of partly wrong answers"
    else:
        words = (
            f"Risk peaks in a wrong part in {peak:.0%} of partly wrong answers; "
            f"{CALLED[best]} is wrong in {values[best]:.0%}"
        )
    return words


def _pointers(axes: Axes, rows: pl.DataFrame) -> None:
    """How often each pointer lies in a wrong part, best first; what needs no trace is hollow."""
    found = dict(rows.select("pointer", "value").iter_rows())
    names = sorted((*POINTERS, *CHANCE), key=lambda name: -(found[name] or 0))
    for place, name in enumerate(names):
        row = rows.filter(pointer=name).row(0, named=True)
        if row["value"] is None:
            continue
        color = figure_style.MUTED if name in CHANCE else figure_style.INK
        if row["low"] is not None:
            axes.hlines(place, row["low"], row["high"], color=color, lw=1.2)
        fill = "white" if name in CHANCE else color
        axes.plot(row["value"], place, "o", ms=4, color=color, mfc=fill)
    axes.set_yticks(range(len(NAMES)), [NAMES[name] for name in names])
    axes.set_ylim(len(NAMES) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.grid(axis="x")
    axes.set_xlabel(f"in a wrong part (n = {rows['mixed'].max()} answers)")


def _reviews(axes: Axes, scores: pl.DataFrame, entries: Sequence[Entry]) -> None:
    """The share of the wrong parts that is found, by the share that is reviewed."""
    for entry in entries:
        look = figure_style.style_of(entry)
        for kind, line in ((PART, "-"), (WHOLE, ":")):
            own = scores.filter(estimator=entry.id, scored=kind)
            values = [own.filter(metric=f"found_{share}")["value"] for share in REVIEWED]
            if all(len(value) and value[0] is not None for value in values):
                fill = {"mew": 0} if kind == PART else {"mfc": "white"}
                found = [value[0] for value in values]
                axes.plot(REVIEWED, found, ls=line, **figure_style.point(look), **fill)
    axes.plot(
        REVIEWED, [share / 100 for share in REVIEWED], color=figure_style.MUTED, lw=0.8, ls="--"
    )
    axes.set_xticks(REVIEWED)
    axes.set_xlabel("% reviewed (dashed: chance)")
    axes.set_ylabel("share of the wrong found")
    axes.set_ylim(0, None)
    axes.grid(axis="y")
