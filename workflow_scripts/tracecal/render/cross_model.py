"""The cross-model comparison: TRACE+ against the best baseline, model by model."""

from collections.abc import Mapping, Sequence
from statistics import fmean
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
    mean_duel,
    nothing_to_compare,
    partly_undefined,
    side_cells,
    value_column,
)
from tracecal.render.table import Column, Row, RowGroup, Table, cell

Labels = Mapping[str, str]


class Contest(NamedTuple):
    """A duel on the average over tasks, and what came of the duels on each task."""

    average: Duel
    wins: int
    supported: int
    tasks: int


def cross_model(
    metrics: pl.DataFrame,
    intervals: pl.DataFrame,
    accuracy: pl.DataFrame,
    entries: Sequence[Entry],
    models: Labels,
    tasks: Labels,
    study: Mapping,
) -> Table:
    """The table; `study` names the models and the tasks."""
    baselines = [entry for entry in entries if entry.role == "baseline"]
    trace_plus = [entry for entry in entries if entry.id == TRACE_PLUS]
    selected = averages.select(metrics, baselines + trace_plus, study["models"], study["tasks"])
    present, slugs = sorted(set(selected["task"])), sorted(set(selected["model"]))
    bounds = read_bounds(intervals)
    contests = {
        slug: [_contest(selected, slug, baselines, metric, bounds) for metric in METRICS]
        for slug in slugs
    }
    right = _accuracies(accuracy, present)
    known = [right[slug] for slug in slugs if slug in right]
    overall = [
        _overall([contests[slug][i] for slug in slugs], metric, bounds)
        for i, metric in enumerate(METRICS)
    ]
    pool = set(selected["estimator"]) - {TRACE_PLUS}
    scope = (cell(len(pool)), cell(" ".join(slugs)), cell(" ".join(present)))
    marked = any(one.average.unsupported for both in (*contests.values(), overall) for one in both)
    usual = [*explained(intervals, marked), *_notes(selected, contests, models, tasks)]
    rows = [_row(s, models[s], right.get(s), contests[s]) + scope for s in slugs]
    last = _row(None, "Overall", fmean(known) if known else None, overall) + scope
    return Table(
        name="cross_model",
        title="Cross-model comparison",
        caption=_caption(selected, len(baselines), len(slugs), [tasks[task] for task in present]),
        columns=_columns(),
        groups=(RowGroup(tuple(rows)), RowGroup((last,))),
        emphasis="Bold: the better of Best Non-TRACE and TRACE+, unless both print alike.",
        notes=(
            *phrases.absent_tasks(study["tasks"], present, tasks),
            *(nothing_to_compare(selected) or usual),
        ),
    )


def _contest(
    selected: pl.DataFrame,
    model: str,
    baselines: Sequence[Entry],
    metric: str,
    bounds: Intervals,
) -> Contest:
    of_model = selected.filter(model=model)
    by_task = [
        duel(
            of_model.filter(task=task),
            model,
            baselines,
            metric,
            bounds.get((None, model, task, metric), Bounds()),
        )
        for task in sorted(set(of_model["task"]))
    ]
    over_tasks = bounds.get(("cross", model, None, metric), Bounds())
    return Contest(
        duel(of_model, model, baselines, metric, over_tasks),
        wins=sum(one.won for one in by_task),
        supported=sum(one.supported for one in by_task),
        tasks=sum(one.gain is not None for one in by_task),
    )


def _overall(contests: Sequence[Contest], metric: str, bounds: Intervals) -> Contest:
    over_models = bounds.get(("cross", None, None, metric), Bounds())
    return Contest(
        mean_duel([one.average for one in contests], metric, over_models),
        wins=sum(one.wins for one in contests),
        supported=sum(one.supported for one in contests),
        tasks=sum(one.tasks for one in contests),
    )


def _accuracies(accuracy: pl.DataFrame, tasks: Sequence[str]) -> dict[str, float]:
    """By model, the mean of its accuracies on the tasks."""
    rows = accuracy.filter(pl.col("task").is_in(list(tasks))).group_by("model").agg("accuracy")
    return {model: fmean(values) for model, values in rows.iter_rows()}


def _columns() -> tuple[Column, ...]:
    return (
        Column(("model",), shown=False),
        Column(("label",), "Model", align="left"),
        Column(("accuracy",), "Avg. Acc."),
        *(value_column(BEST, m, NAMES[m], "Best Non-TRACE") for m in METRICS),
        *(value_column(TRACE_PLUS, m, NAMES[m], "TRACE+") for m in METRICS),
        *(gain_column(m, f"Δ{NAMES[m]}", "Improvement") for m in METRICS),
        *(Column((f"{m}_wins", f"{m}_tasks"), NAMES[m], "Task Wins") for m in METRICS),
        *(Column((f"{m}_supported_wins",), NAMES[m], "Supported") for m in METRICS),
        *(column for m in METRICS for column in hidden_columns(m)),
        Column(("baselines",), shown=False),
        Column(("models",), shown=False),
        Column(("tasks",), shown=False),
    )


def _row(model: str | None, label: str, accuracy: float | None, contests: Sequence[Contest]) -> Row:
    averaged = [contest.average for contest in contests]
    sides = [side_cells(one) for one in averaged]
    return (
        cell(model),
        cell(label),
        cell(accuracy),
        *(reference for reference, _ in sides),
        *(value for _, value in sides),
        *map(gain_cell, averaged),
        *(cell(one.wins, one.tasks) if one.tasks else cell(None, None) for one in contests),
        *(cell(one.supported if one.tasks else None) for one in contests),
        *(hidden for one in averaged for hidden in hidden_cells(one)),
    )


def _caption(selected: pl.DataFrame, baselines: int, models: int, tasks: Sequence[str]) -> str:
    return (
        f"TRACE+ against the best of {phrases.count(baselines, 'baseline')} on "
        f"{phrases.count(models, 'model')}. Each value is {phrases.over_splits(selected)}, then "
        f"over {phrases.listed(tasks)}. Best Non-TRACE is an oracle: for each model, and for each "
        "metric by itself, it takes the baseline whose average turned out best. An improvement is "
        "positive where TRACE+ is better. Task Wins counts the tasks on which TRACE+ is strictly "
        "better than the best baseline of that very task; Supported counts those of them whose "
        "interval lies above zero. Overall: mean over the models, sum of the wins."
    )


def _notes(
    selected: pl.DataFrame,
    contests: Mapping[str, Sequence[Contest]],
    models: Labels,
    tasks: Labels,
) -> list[str]:
    notes = partly_undefined(averages.per_task(selected), models, tasks)
    for i, metric in enumerate(METRICS):
        open_ = [m for m, both in contests.items() if both[i].average.gain is None]
        if open_:
            names = phrases.listed([models[model] for model in open_])
            notes.append(f"– No {NAMES[metric]} to compare for {names}; left out of Overall.")
    return notes
