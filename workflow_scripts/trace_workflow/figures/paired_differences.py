"""TRACE+ minus the named baseline on every task of every model, and TRACE with shuffled tokens."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_workflow.tables.settings import Labels
from tracecal.apps import figure_style
from tracecal.estimators.entry import Entry

METRICS = {"brier": "Brier", "auroc": "AUROC"}
ROW = 0.155  # inches
NOTHING = "The run has no comparison of TRACE+ with a baseline named beforehand."
SHUFFLED = figure_style.OTHER._replace(marker="o")
SDS = 2


class Row(NamedTuple):
    """A model's name, or a comparison: its label, n answers, and the rows by metric."""

    label: str
    n: int | None = None
    mean: bool = False
    compared: Mapping[str, Mapping] | None = None


def draw(
    improvements: pl.DataFrame,
    accuracy: pl.DataFrame,
    position: pl.DataFrame,
    entries: Sequence[Entry],
    models: Labels,
    tasks: Labels,
) -> Figure:
    """Three panels, from the analyses `improvements`, `accuracy` and `position_shift`.

    `models` stand in their order, tasks in that of their ids.
    """
    if "against" not in improvements.columns:  # a run from before comparisons were named
        improvements = improvements.with_columns(against=pl.lit("oracle"))
    named = improvements.filter(pl.col("metric").is_in(list(METRICS)), against="named")
    rows = list(compared_rows(named, accuracy, models, tasks))
    places = _shift_places(position)
    with figure_style.applied():
        if not rows:
            return figure_style.sentence(NOTHING, figure_style.TEXT_WIDTH, 1.5)
        height = 1.05 + ROW * max(len(rows), 2 * len(places), 8)
        figure = Figure(figsize=(figure_style.TEXT_WIDTH, height))
        brier, auroc, shifted = figure.subplots(1, 3, width_ratios=[1, 1, 0.9])
        labels = {entry.id: entry.label for entry in entries}
        baseline = named.drop_nulls("baseline")["baseline"].unique().sort().to_list()
        below = f"better by, {100 * named['level'].max():g} % interval"
        for axes, letter, (metric, name) in zip((brier, auroc), "ab", METRICS.items(), strict=True):
            _differences(axes, rows, metric)
            figure_style.panel_title(axes, letter, name)
            axes.set_xlabel(below, fontsize=figure_style.SMALL, color=figure_style.MUTED)
        auroc.tick_params(labelleft=False)
        _shifts(shifted, places, tasks)
        figure_style.panel_title(shifted, "c", "Does position matter?")
        rival = " or ".join(labels.get(one, one) for one in baseline)
        figure_style.legend(figure, _keys(), f"(a, b) TRACE+ against {rival}, named beforehand")
    return figure


def compared_rows(
    named: pl.DataFrame, accuracy: pl.DataFrame, models: Labels, tasks: Labels
) -> Iterator[Row]:
    """Of each model its name, its tasks and the mean over those of its study."""
    counts = {(row["model"], row["task"]): row["n"] for row in accuracy.iter_rows(named=True)}
    for model, label in models.items():
        own = named.filter(model=model)
        if own.is_empty():
            continue
        yield Row(label)
        pairs = own.filter(pl.col("study").is_null())
        for (task,), part in sorted(pairs.group_by("task")):
            yield Row(tasks[task], counts.get((model, task)), compared=_by_metric(part))
        for study in ("main", "cross"):
            part = own.filter(study=study)
            if len(part):
                name = "mean" if study == "main" else "mean, cross-model tasks"
                yield Row(name, None, True, _by_metric(part))
    overall = named.filter(pl.col("model").is_null(), study="cross")
    if len(overall):
        yield Row("mean over models", None, True, _by_metric(overall))


def _by_metric(rows: pl.DataFrame) -> dict[str, Mapping]:
    return {row["metric"]: row for row in rows.iter_rows(named=True)}


def _differences(axes: Axes, rows: Sequence[Row], metric: str) -> None:
    axes.axvline(0, color=figure_style.MUTED, lw=0.7, zorder=1)
    for height, row in enumerate(rows):
        found = (row.compared or {}).get(metric)
        if not found or found["difference"] is None:
            continue
        low, high = found["low"], found["high"]
        known = low is not None
        apart = known and not low <= 0 <= high
        color = figure_style.TRACE_PLUS.color if apart else figure_style.MUTED
        if known:
            axes.hlines(height, low, high, color=color, lw=1.1, zorder=2)
        shape = {"marker": "D" if row.mean else "o", "ms": 4, "color": color}
        fill = color if apart else "white"
        axes.plot(found["difference"], height, ls="", mfc=fill, zorder=3, **shape)
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


def _keys() -> list:
    apart = figure_style.TRACE_PLUS._replace(marker="o", size=4)
    return [
        figure_style.key(" interval excludes zero", apart, "-"),
        figure_style.key(
            " interval includes zero", apart._replace(color=figure_style.MUTED), "-", "white"
        ),
        figure_style.key(" TRACE, tokens in order", figure_style.TRACE),
        figure_style.key(f" tokens shuffled, ± {SDS} s.d. over orders", SHUFFLED, "-"),
    ]


def _shift_places(position: pl.DataFrame) -> list[tuple[str | None, float, float, float]]:
    """By task, the average last: AUROC in order, and shuffled with its s.d. over orders."""
    defined = position.drop_nulls("mean")
    original = defined.filter(quantity="original", over="split").select("task", "mean")
    shifted = defined.filter(quantity="shifted", over="draw").select("task", "mean", "sd")
    joined = original.join(shifted, on="task", nulls_equal=True, suffix="_shifted")
    return joined.sort("task", nulls_last=True).rows()


def _shifts(axes: Axes, places: Sequence[tuple], tasks: Labels) -> None:
    for height, (task, original, mean, sd) in enumerate(places):
        spread = SDS * (sd or 0.0)
        axes.hlines(height, mean - spread, mean + spread, color=SHUFFLED.color, lw=1.1, zorder=2)
        axes.plot(mean, height, ls="", mew=0, zorder=3, **figure_style.point(SHUFFLED))
        axes.plot(
            original, height, ls="", mew=0, zorder=4, **figure_style.point(figure_style.TRACE)
        )
        where = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        label = tasks[task] if task else "Average"
        axes.annotate(label, (0, height), (2, 6), va="bottom", fontsize=figure_style.SMALL, **where)
    axes.set_ylim(max(len(places), 4) - 0.5, -0.8)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.locator_params(axis="x", nbins=4)
    axes.set_xlabel("AUROC of TRACE", fontsize=figure_style.SMALL, color=figure_style.MUTED)
