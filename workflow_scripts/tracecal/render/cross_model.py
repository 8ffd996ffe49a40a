"""The cross-model comparison: TRACE+ against the best baseline, model by model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

import polars as pl

from tracecal.render import averages, phrases
from tracecal.render.averages import BETTER, NAMES, Entry, Series
from tracecal.render.table import Cell, Column, Row, RowGroup, Table, cell, ranks

Labels = Mapping[str, str]
METRICS = ("brier", "auroc")
TRACE_PLUS = "trace_plus"
SIDES = ("best_baseline", TRACE_PLUS, "improvement")
DECIMALS = 3


class Duel(NamedTuple):
    """TRACE+ against the best baseline by one metric; undefined where either is.

    `splits` holds both sides split by split.
    """

    winner: str | None
    reference: float | None
    value: float | None
    splits: tuple[Series, Series]
    wins: int
    tasks: int


def cross_model(
    metrics: pl.DataFrame,
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
    duels = {slug: duels_of(selected.filter(model=slug), slug, baselines) for slug in slugs}
    right = _accuracies(accuracy, present)
    known = [right[slug] for slug in slugs if slug in right]
    overall = [_overall([duels[slug][i] for slug in slugs]) for i in range(len(METRICS))]
    pool = set(selected["estimator"]) - {TRACE_PLUS}
    scope = (cell(len(pool)), cell(" ".join(slugs)), cell(" ".join(present)))
    rows = [_row(s, models[s], right.get(s), duels[s]) + scope for s in slugs]
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
            *_notes(selected, duels, models, tasks),
        ),
    )


def duels_of(selected: pl.DataFrame, model: str, baselines: Sequence[Entry]) -> list[Duel]:
    """A model's duel by each metric, averaged over the tasks of `selected`."""
    by_task, overall = averages.per_task(selected), averages.over_tasks(selected)
    by_split = averages.split_means(selected)
    tasks = sorted(set(selected["task"]))

    def average(estimator: str, metric: str) -> float | None:
        return overall.get((model, estimator, metric), averages.MISSING).mean

    def task_gain(task: str, metric: str) -> float | None:
        def mean(estimator: str) -> float | None:
            return by_task.get((model, task, estimator, metric), averages.MISSING).mean

        values = {entry.id: mean(entry.id) for entry in baselines}
        return averages.gain(values.get(averages.best(values, metric)), mean(TRACE_PLUS), metric)

    duels = []
    for metric in METRICS:
        values = {entry.id: average(entry.id, metric) for entry in baselines}
        winner = averages.best(values, metric)
        gains = [g for g in (task_gain(task, metric) for task in tasks) if g is not None]
        wins = sum(g > 0 for g in gains)
        sides = [by_split.get((model, one, metric), {}) for one in (winner, TRACE_PLUS)]
        value = average(TRACE_PLUS, metric)
        duels.append(Duel(winner, values.get(winner), value, tuple(sides), wins, len(gains)))
    return duels


def _overall(duels: Sequence[Duel]) -> Duel:
    both = [duel for duel in duels if None not in (duel.reference, duel.value)]
    return Duel(
        winner=None,
        reference=fmean(duel.reference for duel in both) if both else None,
        value=fmean(duel.value for duel in both) if both else None,
        splits=tuple(_mean_series([duel.splits[side] for duel in both]) for side in (0, 1)),
        wins=sum(duel.wins for duel in duels),
        tasks=sum(duel.tasks for duel in duels),
    )


def _mean_series(members: Sequence[Series]) -> Series:
    """The mean of several series where all of them have a value."""
    splits = sorted(set().union(*members))
    values = {split: [series.get(split) for series in members] for split in splits}
    return {split: None if None in each else fmean(each) for split, each in values.items()}


def _accuracies(accuracy: pl.DataFrame, tasks: Sequence[str]) -> dict[str, float]:
    """By model, the mean of its accuracies on the tasks."""
    rows = accuracy.filter(pl.col("task").is_in(list(tasks))).group_by("model").agg("accuracy")
    return {model: fmean(values) for model, values in rows.iter_rows()}


def _columns() -> tuple[Column, ...]:
    def pair(key: str, group: str, delta: str = "", **options) -> list[Column]:
        return [
            Column((f"{m}_{key}",), delta + NAMES[m], group, decimals=DECIMALS, **options)
            for m in METRICS
        ]

    def directed(key: str, group: str) -> list[Column]:
        return [
            replace(c, better=BETTER[m]) for c, m in zip(pair(key, group), METRICS, strict=True)
        ]

    return (
        Column(("model",), shown=False),
        Column(("label",), "Model", align="left"),
        Column(("accuracy",), "Avg. Acc."),
        *directed("best_baseline", "Best Non-TRACE"),
        *directed(TRACE_PLUS, "TRACE+"),
        *pair("improvement", "Improvement", "Δ", better="higher", signed=True),
        *(Column((f"{m}_wins", f"{m}_tasks"), NAMES[m], "Task Wins") for m in METRICS),
        *(Column((f"{m}_best_baseline_id",), shown=False) for m in METRICS),
        *(Column((f"{m}_{key}_sd",), shown=False) for m in METRICS for key in SIDES),
        Column(("baselines",), shown=False),
        Column(("models",), shown=False),
        Column(("tasks",), shown=False),
    )


def _row(model: str | None, label: str, accuracy: float | None, duels: Sequence[Duel]) -> Row:
    sides = [both_sides(duel, metric) for duel, metric in zip(duels, METRICS, strict=True)]
    return (
        cell(model),
        cell(label),
        cell(accuracy),
        *(reference for reference, _ in sides),
        *(value for _, value in sides),
        *(
            cell(averages.gain(duel.reference, duel.value, metric))
            for duel, metric in zip(duels, METRICS, strict=True)
        ),
        *(cell(duel.wins, duel.tasks) if duel.tasks else cell(None, None) for duel in duels),
        *(cell(duel.winner) for duel in duels),
        *(
            cell(sd)
            for duel, metric in zip(duels, METRICS, strict=True)
            for sd in spreads(duel, metric)
        ),
    )


def spreads(duel: Duel, metric: str) -> list[float | None]:
    """The s.d. over splits of the best baseline, of TRACE+ and of the improvement."""
    reference, value = duel.splits
    gains = [averages.gain(x, value.get(split), metric) for split, x in reference.items()]
    return [averages.spread(values) for values in (reference.values(), value.values(), gains)]


def both_sides(duel: Duel, metric: str) -> list[Cell]:
    """The best baseline and TRACE+, the better one marked."""
    values = (duel.reference, duel.value)
    found = ranks(values, BETTER[metric], DECIMALS)
    return [
        replace(cell(value), emphasis="best" if emphasis == "best" else None)
        for value, emphasis in zip(values, found, strict=True)
    ]


def _caption(selected: pl.DataFrame, baselines: int, models: int, tasks: Sequence[str]) -> str:
    return (
        f"TRACE+ against the best of {phrases.count(baselines, 'baseline')} on "
        f"{phrases.count(models, 'model')}. Each value is {phrases.over_splits(selected)}, then "
        f"over {phrases.listed(tasks)}. Best Non-TRACE is an oracle: for each model, and for each "
        "metric by itself, it takes the baseline whose average turned out best. An improvement is "
        "positive where TRACE+ is better. Task Wins counts the tasks on which TRACE+ is strictly "
        "better than the best baseline of that very task. Overall: mean over the models, sum of "
        "the wins."
    )


def _notes(
    selected: pl.DataFrame, duels: Mapping[str, Sequence[Duel]], models: Labels, tasks: Labels
) -> list[str]:
    estimators = set(selected["estimator"])
    if TRACE_PLUS not in estimators:
        return ["TRACE+ is not among the estimators of this run, so there is nothing to compare."]
    if estimators == {TRACE_PLUS}:
        return ["No baseline is among the estimators of this run, so there is nothing to compare."]
    notes = [_partly(averages.per_task(selected), metric, models, tasks) for metric in METRICS]
    for i, metric in enumerate(METRICS):
        open_ = [m for m, both in duels.items() if None in (both[i].reference, both[i].value)]
        if open_:
            names = phrases.listed([models[model] for model in open_])
            notes.append(f"– No {NAMES[metric]} to compare for {names}; left out of Overall.")
    return [note for note in notes if note]


def _partly(
    by_task: averages.TaskAverages, metric: str, models: Labels, tasks: Labels
) -> str | None:
    undefined: dict[tuple[str, str], tuple[int, int]] = {}
    for (model, task, _, name), average in by_task.items():
        if name == metric and average.undefined:
            worst = undefined.get((model, task), (0, 0))
            undefined[model, task] = max(worst, (average.undefined, average.splits))
    parts = [
        f"{models[model]} on {tasks[task]} ({count} of {splits} splits)"
        for (model, task), (count, splits) in sorted(undefined.items())
    ]
    return (
        f"{NAMES[metric]} undefined and left out of the means: {'; '.join(parts)}."
        if parts
        else None
    )
