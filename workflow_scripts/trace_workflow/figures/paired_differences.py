"""TRACE+ less the prespecified and the selected baseline, on every task of every model."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_workflow.tables.settings import Labels
from tracecal.estimators.entry import Entry
from tracecal.pages import figure_style

METRICS = {"brier": "Brier", "auroc": "AUROC"}
ROW = 0.25  # inches
APART = 0.17  # of a row, from its middle
NOTHING = "The run has no comparison of TRACE+ with a prespecified or a selected baseline."
# By the analysis's name of the baseline: the marker, and the place in a row.
RIVALS = {"named": ("o", -APART), "picked": ("s", APART)}


class Row(NamedTuple):
    """A model's name, or a comparison: its label, n answers, and the rows by metric and rival."""

    label: str
    n: int | None = None
    compared: Mapping[tuple[str, str], Mapping] | None = None


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
    found = improvements.filter(
        pl.col("metric").is_in(list(METRICS)), pl.col("against").is_in(list(RIVALS))
    )
    rows = list(compared_rows(found, accuracy, models, tasks))
    with figure_style.applied():
        if not rows:
            return figure_style.sentence(NOTHING, figure_style.TEXT_WIDTH, 1.5)
        figure = Figure(figsize=(figure_style.TEXT_WIDTH, 1.75 + ROW * max(len(rows), 6)))
        panels = figure.subplots(1, len(METRICS))
        below = f"TRACE+ better by, {100 * found['level'].max():g} % interval"
        for axes, letter, (metric, name) in zip(panels, "ab", METRICS.items(), strict=True):
            _differences(axes, rows, metric)
            figure_style.panel_title(axes, letter, name)
            axes.set_xlabel(below, fontsize=figure_style.SMALL, color=figure_style.MUTED)
        panels[-1].tick_params(labelleft=False)
        figure_style.message(figure, counted(found))
        labels = {entry.id: entry.label for entry in entries}
        named = found.filter(against="named").drop_nulls("baseline")["baseline"].unique().sort()
        rival = " or ".join(labels.get(one, one) for one in named)
        figure_style.legend(figure, _keys(rival))
    return figure


def counted(found: pl.DataFrame) -> str:
    """The figure's message: on how many pairs the interval of the AUROC excludes zero."""
    pairs = found.filter(pl.col("study").is_null(), metric="auroc").drop_nulls("low")
    parts = []
    for rival, name in {"named": "the prespecified", "picked": "the selected"}.items():
        own = pairs.filter(against=rival)
        better, worse = (own["low"] > 0).sum(), (own["high"] < 0).sum()
        if own.height:
            parts.append(f"{name} baseline on {better} of {own.height} pairs, worse on {worse}")
    return f"TRACE+ ranks better than {'; than '.join(parts)}" if parts else ""


def compared_rows(
    found: pl.DataFrame, accuracy: pl.DataFrame, models: Labels, tasks: Labels
) -> Iterator[Row]:
    """Of each model its name, its tasks and the mean over those of its study."""
    counts = {(row["model"], row["task"]): row["n"] for row in accuracy.iter_rows(named=True)}
    for model, label in models.items():
        own = found.filter(model=model)
        if own.is_empty():
            continue
        yield Row(label)
        pairs = own.filter(pl.col("study").is_null())
        for (task,), part in sorted(pairs.group_by("task")):
            yield Row(tasks[task], counts.get((model, task)), _by_rival(part))
        for study in ("main", "cross"):
            part = own.filter(pl.col("task").is_null(), study=study)
            if len(part):
                name = "mean" if study == "main" else "mean, cross-model tasks"
                yield Row(name, None, _by_rival(part))
    overall = found.filter(pl.col("model").is_null(), study="cross")
    if len(overall):
        yield Row("mean over models", None, _by_rival(overall))


def _by_rival(rows: pl.DataFrame) -> dict[tuple[str, str], Mapping]:
    return {(row["metric"], row["against"]): row for row in rows.iter_rows(named=True)}


def _differences(axes: Axes, rows: Sequence[Row], metric: str) -> None:
    axes.axvline(0, color=figure_style.MUTED, lw=0.7, zorder=1)
    for height, row in enumerate(rows):
        for rival, (marker, place) in RIVALS.items():
            found = (row.compared or {}).get((metric, rival))
            if found and found["difference"] is not None:
                _difference(axes, found, marker, height + place)
    names = [
        row.label if row.compared is None or not row.n else f"{row.label}, n = {row.n:,}"
        for row in rows
    ]
    axes.set_yticks(range(len(rows)), names)
    for tick, row in zip(axes.get_yticklabels(), rows, strict=True):
        if row.compared is None:
            tick.set_fontweight("bold")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="y")


def _difference(axes: Axes, found: Mapping, marker: str, height: float) -> None:
    """A difference with its interval, in colour where that excludes zero."""
    low, high = found["low"], found["high"]
    apart = low is not None and not low <= 0 <= high
    color = figure_style.TRACE_PLUS.color if apart else figure_style.MUTED
    if low is not None:
        axes.hlines(height, low, high, color=color, lw=1.3, zorder=2)
    shape = {"marker": marker, "ms": 4.5, "color": color, "mfc": color if apart else "white"}
    axes.plot(found["difference"], height, ls="", zorder=3, **shape)


def _keys(rival: str) -> list:
    plain = figure_style.OTHER._replace(color=figure_style.MUTED, size=4.5)
    keys = [f" less {rival}, prespecified" * bool(rival), " less the selected baseline"]
    shown = [
        figure_style.key(name, plain._replace(marker=marker), "-", "white")
        for name, (marker, _) in zip(keys, RIVALS.values(), strict=True)
        if name
    ]
    apart = figure_style.TRACE_PLUS._replace(marker="o", size=4.5)
    return [*shown, figure_style.key(" filled: interval excludes zero", apart, "-")]
