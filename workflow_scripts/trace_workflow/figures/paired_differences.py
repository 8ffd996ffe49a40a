"""TRACE+ less the prespecified and the selected baseline, on every task of every model."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_workflow.figures.panels import note_below, set_row_axis
from trace_workflow.tables.study_results import Labels, rows_by
from tracecal.estimators.estimator import Entry
from tracecal.pages import figure_style as style

METRICS = {"brier": "Brier", "auroc": "AUROC"}
ROW = 0.25  # inches
OFFSET = 0.17  # of a row, from its middle
NOTHING = "The run has no comparison of TRACE+ with a prespecified or a selected baseline."
# By the analysis's name of the baseline: the marker, and the place in a row.
RIVALS = {"named": ("o", -OFFSET), "picked": ("s", OFFSET)}
RIVAL_NAMES = {"named": "the prespecified", "picked": "the selected"}


class DifferenceRow(NamedTuple):
    """A comparison: its label, n answers, and the differences by metric and rival.

    A row with a model's name alone has no differences.
    """

    label: str
    n: int | None = None
    differences: Mapping[tuple[str, str], Mapping] | None = None


def draw(
    improvements: pl.DataFrame,
    accuracy: pl.DataFrame,
    entries: Sequence[Entry],
    models: Labels,
    tasks: Labels,
) -> Figure:
    """Two panels, from the analyses `improvements` and `accuracy`.

    `models` stand in their order, tasks in that of their ids.
    """
    if "against" not in improvements.columns:  # a run from before comparisons were named
        improvements = improvements.with_columns(against=pl.lit("oracle"))
    compared = improvements.filter(
        pl.col("metric").is_in(list(METRICS)), pl.col("against").is_in(list(RIVALS))
    )
    rows = list(difference_rows(compared, accuracy, models, tasks))
    with style.applied():
        if not rows:
            return style.sentence(NOTHING, style.TEXT_WIDTH, 1.5)
        figure = Figure(figsize=(style.TEXT_WIDTH, 1.75 + ROW * max(len(rows), 6)))
        panels = figure.subplots(1, len(METRICS))
        below = f"TRACE+ better by, {100 * compared['level'].max():g} % interval"
        for axes, letter, (metric, name) in zip(panels, "ab", METRICS.items(), strict=True):
            _draw_panel(axes, rows, metric)
            style.panel_title(axes, letter, name)
            note_below(axes, below)
        panels[-1].tick_params(labelleft=False)
        style.message(figure, message(compared))
        labels = {entry.id: entry.label for entry in entries}
        prespecified = compared.filter(against="named").drop_nulls("baseline")["baseline"]
        names = [labels.get(id, id) for id in prespecified.unique().sort()]
        style.legend(figure, _keys(" or ".join(names)))
    return figure


def message(compared: pl.DataFrame) -> str:
    """The figure's message: on how many pairs the interval of the AUROC excludes zero."""
    pairs = compared.filter(pl.col("study").is_null(), metric="auroc").drop_nulls("low")
    parts = []
    for rival, name in RIVAL_NAMES.items():
        rows = pairs.filter(against=rival)
        better, worse = (rows["low"] > 0).sum(), (rows["high"] < 0).sum()
        if rows.height:
            parts.append(f"{name} baseline on {better} of {rows.height} pairs, worse on {worse}")
    return f"TRACE+ ranks better than {'; than '.join(parts)}" if parts else ""


def difference_rows(
    compared: pl.DataFrame, accuracy: pl.DataFrame, models: Labels, tasks: Labels
) -> Iterator[DifferenceRow]:
    """Of each model its name, its tasks and the mean over those of its study."""
    counts = {(row["model"], row["task"]): row["n"] for row in accuracy.iter_rows(named=True)}
    for model, label in models.items():
        of_model = compared.filter(model=model)
        if of_model.is_empty():
            continue
        yield DifferenceRow(label)
        pairs = of_model.filter(pl.col("study").is_null())
        for (task,), rows in sorted(pairs.group_by("task")):
            n = counts.get((model, task))
            yield DifferenceRow(tasks[task], n, rows_by(rows, "metric", "against"))
        for study in ("main", "cross"):
            rows = of_model.filter(pl.col("task").is_null(), study=study)
            if len(rows):
                name = "mean" if study == "main" else "mean, cross-model tasks"
                yield DifferenceRow(name, None, rows_by(rows, "metric", "against"))
    overall = compared.filter(pl.col("model").is_null(), study="cross")
    if len(overall):
        yield DifferenceRow("mean over models", None, rows_by(overall, "metric", "against"))


def _draw_panel(axes: Axes, rows: Sequence[DifferenceRow], metric: str) -> None:
    axes.axvline(0, color=style.MUTED, lw=0.7, zorder=1)
    for height, row in enumerate(rows):
        for rival, (marker, offset) in RIVALS.items():
            values = (row.differences or {}).get((metric, rival))
            if values and values["difference"] is not None:
                _draw_difference(axes, values, marker, height + offset)
    names = [
        row.label if row.differences is None or not row.n else f"{row.label}, n = {row.n:,}"
        for row in rows
    ]
    axes.set_yticks(range(len(rows)), names)
    for tick, row in zip(axes.get_yticklabels(), rows, strict=True):
        if row.differences is None:
            tick.set_fontweight("bold")
    set_row_axis(axes, len(rows))
    axes.grid(axis="y")


def _draw_difference(axes: Axes, values: Mapping, marker: str, height: float) -> None:
    """A difference with its interval, in colour where that excludes zero."""
    low, high = values["low"], values["high"]
    excludes_zero = low is not None and not low <= 0 <= high
    color = style.TRACE_PLUS.color if excludes_zero else style.MUTED
    if low is not None:
        axes.hlines(height, low, high, color=color, lw=1.3, zorder=2)
    fill = color if excludes_zero else "white"
    point = {"marker": marker, "ms": 4.5, "color": color, "mfc": fill}
    axes.plot(values["difference"], height, ls="", zorder=3, **point)


def _keys(prespecified: str) -> list:
    grey = style.OTHER._replace(color=style.MUTED, size=4.5)
    names = [
        f" less {prespecified}, prespecified" * bool(prespecified),
        " less the selected baseline",
    ]
    keys = [
        style.key(name, grey._replace(marker=marker), "-", "white")
        for name, (marker, _) in zip(names, RIVALS.values(), strict=True)
        if name
    ]
    filled = style.TRACE_PLUS._replace(marker="o", size=4.5)
    return [*keys, style.key(" filled: interval excludes zero", filled, "-")]
