"""Behind the cross-model comparison: which baseline was best, for each model and on each task."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import polars as pl

from tracecal.render import averages, phrases
from tracecal.render.averages import NAMES, Entry
from tracecal.render.bounds import Bounds, Intervals, explained, read_bounds
from tracecal.render.duels import (
    BEST,
    METRICS,
    TRACE_PLUS,
    Duel,
    duel,
    gain_cell,
    gain_column,
    hidden_cells,
    hidden_columns,
    nothing_to_compare,
    partly_undefined,
    side_cells,
    value_column,
)
from tracecal.render.table import Cell, Column, Row, RowGroup, Table, cell

Labels = Mapping[str, str]
BOLD = "Bold: the better of the best baseline and TRACE+, unless both print alike."


class Material(NamedTuple):
    """What both tables are made from: a study's metrics, its baselines and the intervals."""

    selected: pl.DataFrame
    baselines: Sequence[Entry]
    bounds: Intervals

    @property
    def models(self) -> list[str]:
        return sorted(set(self.selected["model"]))

    def duels(self, model: str, task: str | None = None) -> list[Duel]:
        """By each metric, on one task or on the average over tasks."""
        rows = self.selected.filter(task=task) if task else self.selected
        study = None if task else "cross"
        return [
            duel(
                rows,
                model,
                self.baselines,
                metric,
                self.bounds.get((study, model, task, metric), Bounds()),
            )
            for metric in METRICS
        ]

    def label(self, found: Duel) -> Cell:
        """The name of the best baseline."""
        labels = {entry.id: entry.label for entry in self.baselines}
        return cell(labels.get(found.winner))


def task_details(
    metrics: pl.DataFrame,
    intervals: pl.DataFrame,
    entries: Sequence[Entry],
    models: Labels,
    tasks: Labels,
    study: Mapping,
) -> Table:
    """Each model's tasks: the best baseline of the task against TRACE+, by each metric."""
    material = _material(metrics, intervals, entries, study)
    selected = material.selected
    pairs = sorted(set(selected.select("model", "task").iter_rows()))
    duels = {pair: material.duels(*pair) for pair in pairs}

    def row(model: str, task: str) -> Row:
        both = duels[model, task]
        shown = ((material.label(one), *side_cells(one), gain_cell(one)) for one in both)
        hidden = (value for one in both for value in hidden_cells(one))
        return (cell(model), cell(task), cell(tasks[task]), *(c for s in shown for c in s), *hidden)

    def group(model: str) -> RowGroup:
        return RowGroup(tuple(row(*pair) for pair in pairs if pair[0] == model), models[model])

    return Table(
        name="cross_model_task_details",
        title="Cross-model comparison, task by task",
        caption="TRACE+ against the best baseline on each task of each model. The best estimator "
        "is an oracle: for each task, and for each metric by itself, it is the baseline that "
        f"turned out best there. Each value is {phrases.over_splits(selected)}; Δ is positive "
        "where TRACE+ is better.",
        columns=(
            Column(("model",), shown=False),
            Column(("task",), shown=False),
            Column(("label",), "Task", align="left"),
            *(column for metric in METRICS for column in _task_columns(metric)),
            *(column for metric in METRICS for column in hidden_columns(metric)),
        ),
        groups=tuple(map(group, material.models)),
        emphasis=BOLD,
        notes=_notes(material, chain(*duels.values()), intervals, models, tasks),
    )


def best_estimators(
    metrics: pl.DataFrame,
    intervals: pl.DataFrame,
    entries: Sequence[Entry],
    models: Labels,
    tasks: Labels,
    study: Mapping,
) -> Table:
    """The baselines that make up Best Non-TRACE of the cross-model comparison."""
    material = _material(metrics, intervals, entries, study)
    selected = material.selected
    present = sorted(set(selected["task"]))
    duels = {model: material.duels(model) for model in material.models}

    def row(model: str) -> Row:
        both = duels[model]
        sides = [side_cells(one) for one in both]
        best = (
            (material.label(one), reference, gain_cell(one))
            for one, (reference, _) in zip(both, sides, strict=True)
        )
        return (
            cell(model),
            cell(models[model]),
            *(c for three in best for c in three),
            *(value for _, value in sides),
            *(value for one in both for value in hidden_cells(one)),
            cell(" ".join(present)),
        )

    return Table(
        name="cross_model_best_estimators",
        title="Best baselines of the cross-model comparison",
        caption="The baselines behind Best Non-TRACE, an oracle: for each model, and for each "
        "metric by itself, the baseline whose average over "
        f"{phrases.listed([tasks[task] for task in present])} turned out best. Each value is "
        f"{phrases.over_splits(selected)}, then over the tasks; Δ is positive where TRACE+ is "
        "better.",
        columns=(
            Column(("model",), shown=False),
            Column(("label",), "Model", align="left"),
            *(column for metric in METRICS for column in _best_columns(metric)),
            *(value_column(TRACE_PLUS, metric, NAMES[metric], "TRACE+") for metric in METRICS),
            *(column for metric in METRICS for column in hidden_columns(metric)),
            Column(("tasks",), shown=False),
        ),
        groups=(RowGroup(tuple(map(row, material.models))),),
        emphasis=BOLD,
        notes=(
            *phrases.absent_tasks(study["tasks"], present, tasks),
            *_notes(material, chain(*duels.values()), intervals, models, tasks),
        ),
    )


TABLES = {
    "cross_model_task_details": task_details,
    "cross_model_best_estimators": best_estimators,
}


def _material(
    metrics: pl.DataFrame, intervals: pl.DataFrame, entries: Sequence[Entry], study: Mapping
) -> Material:
    baselines = [entry for entry in entries if entry.role == "baseline"]
    trace_plus = [entry for entry in entries if entry.id == TRACE_PLUS]
    selected = averages.select(metrics, baselines + trace_plus, study["models"], study["tasks"])
    return Material(selected, baselines, read_bounds(intervals))


def _task_columns(metric: str) -> list[Column]:
    group = f"{NAMES[metric]} comparison"
    return [
        Column((f"{metric}_{BEST}_label",), "Best estimator", group, align="left"),
        value_column(BEST, metric, "Base", group),
        value_column(TRACE_PLUS, metric, "TRACE+", group),
        gain_column(metric, "Δ", group),
    ]


def _best_columns(metric: str) -> list[Column]:
    group = f"Best Non-TRACE for {NAMES[metric]}"
    return [
        Column((f"{metric}_{BEST}_label",), "Estimator", group, align="left"),
        value_column(BEST, metric, NAMES[metric], group),
        gain_column(metric, f"Δ{NAMES[metric]}", group),
    ]


def _notes(
    material: Material,
    duels: Iterable[Duel],
    intervals: pl.DataFrame,
    models: Labels,
    tasks: Labels,
) -> tuple[str, ...]:
    marked = any(one.unsupported for one in duels)
    by_task = averages.per_task(material.selected)
    usual = [*explained(intervals, marked), *partly_undefined(by_task, models, tasks)]
    return tuple(nothing_to_compare(material.selected) or usual)
