"""The performance overview: average Brier and AUROC of all estimators, and AUROC across models."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from trace_workflow.figures import figure_style as style
from trace_workflow.figures import study_averages
from trace_workflow.tables.metric_names import METRIC_NAMES, METRICS
from trace_workflow.tables.study_results import Labels, rows_by
from trace_workflow.tables.wording import join_names
from tracecal.estimators.estimator import TRACE_PLUS, Entry

ROW_HEIGHT = 0.165
KEYS = 9  # rows of the first panel that are as high as the legend
LANE = 0.13  # between the points of one model, per distance between two models
Ranking = list[tuple[Entry, dict[str, float | None]]]


class ModelPoint(NamedTuple):
    """A point of the cross-model panel."""

    auroc: float
    look: style.Style


def draw(
    means: pl.DataFrame,
    entries: Sequence[Entry],
    models: Labels,
    tasks: Labels,
    study: Mapping,
    comparisons: pl.DataFrame,
) -> Figure:
    """Three panels; `study` has the parts `main` and `cross` (None: no third panel).

    The lines are intervals of differences to TRACE+, from the analysis `comparisons`, drawn around
    each baseline. Splits share the same answers, so their standard deviation would be none.
    """
    main, cross = study["main"], study["cross"]
    by_model = study_averages.means_of(study_averages.select_models(means, entries, "main", main))
    ranking = _rank_by_brier(by_model, main["model"], entries)
    across = model_points(means, entries, cross) if cross else {}
    # Means over the main study's tasks.
    differences = comparisons.filter(
        pl.col("task").is_null(), study="main", model=main["model"]
    ).drop_nulls("low")
    n_rows = max(len(ranking), 2 * len(across))
    with style.applied():
        figure = Figure(figsize=(style.TEXT_WIDTH, 1.75 + ROW_HEIGHT * max(n_rows, 8)))
        grid = _grid(figure, n_rows, len(across))
        below = study_averages.describe_averages(means, entries, "main", main, tasks)
        for column, (metric, title) in enumerate({"brier": "Brier ↓", "auroc": "AUROC ↑"}.items()):
            axes = figure.add_subplot(grid[:, column])
            _draw_ranking(axes, ranking, metric, differences.filter(metric=metric))
            _set_rows(axes, len(ranking), "" if column else below)
            style.panel_title(axes, "ab"[column], title)
        axes.tick_params(labelleft=False)
        keys = style.family_keys(entry for entry in entries if entry in dict(ranking))
        if across:
            below = study_averages.describe_averages(means, entries, "cross", cross, tasks)
            points = {models[model]: across[model] for model in models if model in across}
            panel = figure.add_subplot(grid[0, 2])
            _draw_models(panel, points, below)
            style.panel_title(panel, "c", "AUROC ↑, models")
            keys.append(style.key("Best non-TRACE", style.BEST_BASELINE))
        if across and grid.nrows > 1:
            rest = figure.add_subplot(grid[1, 2])
            rest.set_axis_off()
            rest.legend(handles=keys, loc="lower left", fontsize=style.NORMAL)
        else:
            style.legend(figure, keys)
        style.message(figure, message(models[main["model"]], differences))
    return figure


def _grid(figure: Figure, n_rows: int, n_models: int) -> GridSpec:
    """Two columns, and with models a third: below few of them there is room for the legend."""
    if not n_models:
        return figure.add_gridspec(1, 2)
    heights = [2 * n_models + 2, n_rows - 2 * n_models - 2]
    heights = heights if heights[1] >= KEYS else [n_rows]
    return figure.add_gridspec(len(heights), 3, width_ratios=[1, 1, 1.35], height_ratios=heights)


def message(model: str, differences: pl.DataFrame) -> str:
    """The figure's message: how many baselines TRACE+ beats; without intervals, the model."""
    counts = []
    for metric in METRICS:
        rows = differences.filter(metric=metric)
        if rows.height:
            wins, losses = (rows["low"] > 0).sum(), (rows["high"] < 0).sum()
            lost = f" and loses to {losses}" if losses else ""
            baselines = "" if counts else " baselines"
            counts.append(f"{wins} of {rows.height}{baselines} by {METRIC_NAMES[metric]}{lost}")
    return f"{model}, averaged over tasks: TRACE+ beats {join_names(counts)}" if counts else model


def model_points(
    means: pl.DataFrame, entries: Sequence[Entry], study: Mapping
) -> dict[str, list[ModelPoint]]:
    """By model: the defined AUROCs of the best baseline (an oracle), TRACE and TRACE+."""
    rows = study_averages.select_models(means, entries, "cross", study)
    by_model = study_averages.means_of(rows)
    points = {}
    for model in sorted(set(rows["model"])):
        aurocs = {entry: by_model.get((model, entry.id, "auroc")) for entry in entries}
        baselines = [e for e in entries if e.role == "baseline" and aurocs[e] is not None]
        best = max(baselines, key=lambda entry: aurocs[entry], default=None)
        candidates = [ModelPoint(aurocs[best], style.BEST_BASELINE)] if best else []
        candidates += [
            ModelPoint(aurocs[e], style.style_of(e)) for e in entries if e.role in ("own", "trace")
        ]
        points[model] = [point for point in candidates if point.auroc is not None]
    return points


def _rank_by_brier(means: study_averages.Means, model: str, entries: Sequence[Entry]) -> Ranking:
    """The estimators that have a Brier score, the best first."""
    rows = []
    for entry in entries:
        by_metric = {m: means.get((model, entry.id, m)) for m in METRICS}
        if by_metric["brier"] is not None:
            rows.append((entry, by_metric))
    return sorted(rows, key=lambda row: row[1]["brier"])


def _draw_ranking(axes: Axes, ranking: Ranking, metric: str, differences: pl.DataFrame) -> None:
    """A point for each estimator, a line at TRACE+'s, and intervals of the differences to it."""
    by_baseline = rows_by(differences, "baseline")
    sign = 1 if metric == "brier" else -1  # differences are positive where TRACE+ is better
    for height, (entry, means) in enumerate(ranking):
        look, value = style.style_of(entry), means[metric]
        if value is None:
            continue
        _draw_point(axes, height, value, look)
        if entry.id == TRACE_PLUS:
            axes.axvline(value, color=style.TRACE_PLUS.color, lw=0.8, ls=":", zorder=1)
        if row := by_baseline.get((entry.id,)):
            ends = sorted(value + sign * (row[end] - row["difference"]) for end in ("low", "high"))
            axes.hlines(height, *ends, color=look.color, lw=1.0, zorder=2)
    axes.set_yticks(range(len(ranking)), [entry.label for entry, _ in ranking])
    for tick, (entry, _) in zip(axes.get_yticklabels(), ranking, strict=True):
        if entry.role == "trace":
            tick.set(color=style.style_of(entry).text, fontweight="bold")


def _draw_models(axes: Axes, models: Mapping[str, Sequence[ModelPoint]], below: str) -> None:
    for height, (label, points) in enumerate(models.items()):
        means = [point.auroc for point in points]
        if means:
            axes.plot([min(means), max(means)], [height] * 2, color=style.FAINT, lw=6, zorder=0)
        # In lanes, so that no point hides another.
        for index, point in enumerate(points):
            lane = LANE * (index - (len(points) - 1) / 2)
            _draw_point(axes, height + lane, point.auroc, point.look)
        axes.annotate(
            label,
            (0, height),
            (2, 9),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            fontsize=style.SMALL,
            va="bottom",
        )
    _set_rows(axes, len(models), below)
    axes.set_ylim(len(models) - 0.5, -0.8)
    axes.set_yticks([])


def _draw_point(axes: Axes, height: float, value: float, look: style.Style) -> None:
    axes.plot(value, height, ls="", zorder=look.order, mew=0, **style.point(look))


def _set_rows(axes: Axes, n_rows: int, below: str) -> None:
    axes.grid(axis="y")
    style.set_row_axis(axes, n_rows)
    style.note_below(axes, below)
