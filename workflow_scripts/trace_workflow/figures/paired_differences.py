"""AUROC of TRACE+ less that of two baselines that a user could choose, for each task and model."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_workflow.figures import figure_style as style
from trace_workflow.tables.study_results import Labels, rows_by
from trace_workflow.tables.wording import count, join_names
from tracecal.estimators.estimator import TRACE_PLUS, Entry

METRIC = "auroc"
ROW = 0.25  # inches
NOTHING = "The run has no comparison of TRACE+ with a prespecified or a selected baseline."
# The analysis's names of baselines, in words.
RIVALS = {"named": "prespecified", "picked": "selected"}
WIN, LOSS, TIE = style.TRACE_PLUS.color, style.INK, style.MUTED


class DifferenceRow(NamedTuple):
    """A comparison: its label, and the differences by rival."""

    label: str
    differences: Mapping[tuple[str], Mapping]


def draw(
    improvements: pl.DataFrame,
    accuracy: pl.DataFrame,
    entries: Sequence[Entry],
    models: Labels,
    tasks: Labels,
) -> Figure:
    """A panel per baseline with a row per pair, from the analyses `improvements` and `accuracy`.

    `models` stand in their order, tasks in that of their ids.
    """
    compared = improvements.filter(
        pl.col("study").is_null(),
        pl.col("against").is_in(list(RIVALS)),
        metric=METRIC,
        estimator=TRACE_PLUS,
    )
    rows = list(difference_rows(compared, accuracy, models, tasks))
    with style.applied():
        if not rows:
            return style.sentence(NOTHING, style.TEXT_WIDTH, 1.5)
        figure = Figure(figsize=(style.TEXT_WIDTH, 1.6 + ROW * max(len(rows), 5)))
        panels = figure.subplots(1, len(RIVALS), sharex=True)
        below = f"AUROC difference, {100 * compared['level'].max():g} % interval"
        for axes, letter, (rival, name) in zip(panels, "ab", RIVALS.items(), strict=True):
            _draw_panel(axes, rows, rival)
            style.panel_title(axes, letter, f"{name.capitalize()} baseline")
            style.note_below(axes, below)
        panels[-1].tick_params(labelleft=False)
        style.message(figure, message(compared))
        style.legend(figure, _keys(), _note(compared, entries, models))
    return figure


def message(compared: pl.DataFrame) -> str:
    """The figure's message: wins, ties and losses over pairs, by whether intervals exclude zero."""
    parts = []
    for rival, name in RIVALS.items():
        rows = compared.filter(against=rival).drop_nulls("low")
        wins, losses = (rows["low"] > 0).sum(), (rows["high"] < 0).sum()
        ties = rows.height - wins - losses
        words = [count(n, word) for word, n in (("win", wins), ("tie", ties)) if n]
        if losses:
            words.append(f"{losses} {'loss' if losses == 1 else 'losses'}")
        if words:
            parts.append(f"{join_names(words)} against the {name} baseline")
    return f"TRACE+ task by task: {'; '.join(parts)}" if parts else ""


def difference_rows(
    compared: pl.DataFrame, accuracy: pl.DataFrame, models: Labels, tasks: Labels
) -> Iterator[DifferenceRow]:
    """A row for each pair; it names each model but the first."""
    counts = {(row["model"], row["task"]): row["n"] for row in accuracy.iter_rows(named=True)}
    measured = [model for model in models if model in set(compared["model"])]
    for index, model in enumerate(measured):
        for (task,), rows in sorted(compared.filter(model=model).group_by("task")):
            n, name = counts.get((model, task)), tasks[task]
            by_model = f", {models[model]}" if index else ""
            sizes = "" if n is None else f", n = {n:,}"
            yield DifferenceRow(f"{name}{by_model}{sizes}", rows_by(rows, "against"))


def _draw_panel(axes: Axes, rows: Sequence[DifferenceRow], rival: str) -> None:
    axes.axvline(0, color=style.MUTED, lw=0.7, zorder=1)
    for height, row in enumerate(rows):
        values = row.differences.get((rival,))
        if values and values["difference"] is not None:
            _draw_difference(axes, values, height)
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    style.set_row_axis(axes, len(rows))
    axes.grid(axis="y")


def _draw_difference(axes: Axes, values: Mapping, height: float) -> None:
    """A difference with its interval: filled where that excludes zero, red where TRACE+ wins."""
    low, high = values["low"], values["high"]
    color, fill = TIE, "white"
    if low is not None and not low <= 0 <= high:
        color = fill = WIN if low > 0 else LOSS
    if low is not None:
        axes.hlines(height, low, high, color=color, lw=1.3, zorder=2)
    axes.plot(values["difference"], height, "o", ls="", ms=4.5, color=color, mfc=fill, zorder=3)


def _keys() -> list:
    look = style.OTHER._replace(marker="o", size=4.5)
    return [
        style.key(" TRACE+ wins", look._replace(color=WIN), "-"),
        style.key(" tie: the interval contains zero", look._replace(color=TIE), "-", "white"),
        style.key(" TRACE+ loses", look._replace(color=LOSS), "-"),
    ]


def _note(compared: pl.DataFrame, entries: Sequence[Entry], models: Labels) -> str:
    """Which baselines were prespecified, and whose the rows without a model's name are."""
    labels = {entry.id: entry.label for entry in entries}
    ids = compared.filter(against="named").drop_nulls("baseline")["baseline"].unique().sort()
    names = [labels.get(id, id) for id in ids]
    parts = [f"prespecified: {' or '.join(names)}"] if names else []
    first = next(label for model, label in models.items() if model in set(compared["model"]))
    return "; ".join([*parts, f"model, unless named: {first}"])
