"""Whether risk lies where an answer is wrong, and what reviewing the least certain parts finds."""

from collections.abc import Mapping, Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_workflow.analyses.localisation import CHANCE, POINTERS
from trace_workflow.analyses.part_scores import PART, REVIEWED, WHOLE
from trace_workflow.tables.localisation import POINTER_NAMES
from trace_workflow.tables.study_results import rows_by
from tracecal.estimators.estimator import Entry
from tracecal.pages import figure_style as style

ROW, HEIGHT = 0.24, 1.6  # inches: of a pointer, and besides
NOTHING = "No answer holds right and wrong parts."
POINTER_WORDS = {
    "failing_name": "the part that usually fails",
    "max_surprisal": "the part with the most surprising token",
    "max_entropy": "the part with the most uncertain token",
    "random_window": "a random window",
    "random_token": "a random token",
    "random_part": "a random part",
}
# The estimators whose reviews are drawn, by their part's and by the whole answer's score.
REVIEWERS = ("seq_logp", "trace", "trace_plus")


def draw(
    pointed: pl.DataFrame,
    scores: pl.DataFrame,
    entries: Sequence[Entry],
    models: Mapping[str, str],
    tasks: Mapping[str, str],
) -> Figure:
    """A row of two panels per pair, from the analyses `localisation` and `part_scores`."""
    pairs = pointed.select("model", "task").unique().sort("model", "task").rows()
    with style.applied():
        if not pointed["mixed"].sum():
            return style.sentence(NOTHING, style.COLUMN_WIDTH, HEIGHT)
        n_pointers = len(POINTERS) + len(CHANCE)
        size = style.TEXT_WIDTH, len(pairs) * (HEIGHT + ROW * n_pointers)
        figure = Figure(figsize=size)
        panels = figure.subplots(len(pairs), 2, squeeze=False, width_ratios=[1, 1.15])
        reviewers = [entry for entry in entries if entry.id in REVIEWERS]
        for (pointers, reviews), (model, task) in zip(panels, pairs, strict=True):
            pair = {"model": model, "task": task}
            _draw_pointers(pointers, pointed.filter(**pair))
            _draw_reviews(reviews, scores.filter(**pair), reviewers)
            style.panel_title(pointers, "a", f"{models[model]},\n{tasks[task]}")
            style.panel_title(reviews, "b", "Parts, least certain first")
        keys = [style.key(entry.label, style.style_of(entry), "-") for entry in reviewers]
        keys += [
            style.key(f"{entry.label}, whole answer", style.style_of(entry), ":", "white")
            for entry in reviewers
            if not scores.filter(estimator=entry.id, scored=WHOLE).is_empty()
        ]
        style.legend(figure, keys)
        style.message(figure, message(pointed))
    return figure


def message(pointed: pl.DataFrame) -> str:
    """The figure's message, on the first pair: the best pointer and the window of peak risk."""
    rows = pointed.drop_nulls("value").sort("model", "task")
    model, task = rows.select("model", "task").row(0)
    shares = dict(rows.filter(model=model, task=task).select("pointer", "value").iter_rows())
    best = max(shares, key=shares.__getitem__)
    peak = shares.get("window")
    if peak is None or best == "window":
        return f"Risk peaks in a wrong part of {shares[best]:.0%} of partly wrong answers"
    return (
        f"Risk peaks in a wrong part in {peak:.0%} of partly wrong answers; "
        f"{POINTER_WORDS[best]} is wrong in {shares[best]:.0%}"
    )


def _draw_pointers(axes: Axes, rows: pl.DataFrame) -> None:
    """How often each pointer lies in a wrong part, best first; what needs no trace is hollow."""
    by_pointer = rows_by(rows, "pointer")
    pointers = sorted(
        (*POINTERS, *CHANCE), key=lambda pointer: -(by_pointer[pointer,]["value"] or 0)
    )
    for height, pointer in enumerate(pointers):
        row = by_pointer[pointer,]
        if row["value"] is None:
            continue
        color = style.MUTED if pointer in CHANCE else style.INK
        if row["low"] is not None:
            axes.hlines(height, row["low"], row["high"], color=color, lw=1.2)
        fill = "white" if pointer in CHANCE else color
        axes.plot(row["value"], height, "o", ms=4, color=color, mfc=fill)
    n_pointers = len(pointers)
    axes.set_yticks(range(n_pointers), [POINTER_NAMES[pointer] for pointer in pointers])
    axes.set_ylim(n_pointers - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.grid(axis="x")
    axes.set_xlabel(f"in a wrong part (n = {rows['mixed'].max()} answers)")


def _draw_reviews(axes: Axes, scores: pl.DataFrame, entries: Sequence[Entry]) -> None:
    """The share of the wrong parts that a review finds, by the share that is reviewed."""
    for entry in entries:
        look = style.style_of(entry)
        for scored, line in ((PART, "-"), (WHOLE, ":")):
            by_metric = rows_by(scores.filter(estimator=entry.id, scored=scored), "metric")
            rows = [by_metric.get((f"found_{percent}",)) for percent in REVIEWED]
            if all(row and row["value"] is not None for row in rows):
                fill = {"mew": 0} if scored == PART else {"mfc": "white"}
                shares = [row["value"] for row in rows]
                axes.plot(REVIEWED, shares, ls=line, **style.point(look), **fill)
    chance = [percent / 100 for percent in REVIEWED]
    axes.plot(REVIEWED, chance, color=style.MUTED, lw=0.8, ls="--")
    axes.set_xticks(REVIEWED)
    axes.set_xlabel("% reviewed (dashed: chance)")
    axes.set_ylabel("share of the wrong found")
    axes.set_ylim(0, None)
    axes.grid(axis="y")
