"""TRACE+ against the best baseline where both are calibrated on the other tasks only."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from tracecal.render import averages, phrases
from tracecal.render.averages import BETTER, NAMES, Entry
from tracecal.render.cross_model import (
    METRICS,
    SIDES,
    TRACE_PLUS,
    Duel,
    both_sides,
    duels_of,
    spreads,
)
from tracecal.render.table import Column, Row, RowGroup, Table, cell

Labels = Mapping[str, str]


def cross_task_transfer_table(
    transferred: pl.DataFrame,
    entries: Sequence[Entry],
    models: Labels,
    tasks: Labels,
    study: Mapping,
) -> Table:
    """The table; `transferred` holds metrics on each target, without a row if there is one task."""
    model = study["model"]
    baselines = [entry for entry in entries if entry.role == "baseline"]
    compared = [entry for entry in entries if entry.id == TRACE_PLUS or entry in baselines]
    own = transferred.filter(model=model)
    selected = averages.select(own, compared, [model], study["tasks"]) if len(own) else own
    present = sorted(set(selected["task"]))
    found = {task: duels_of(selected.filter(task=task), model, baselines) for task in present}
    scope = (cell(model), cell(" ".join(present)))
    rows = [(cell(task), cell(tasks[task]), *_row(duels), *scope) for task, duels in found.items()]
    return Table(
        name="cross_task_transfer",
        title="Cross-task transfer",
        caption=_caption(selected, models[model], len(baselines)),
        columns=COLUMNS,
        groups=(RowGroup(tuple(rows)),) if rows else (),
        emphasis="Bold: the better of Best Non-TRACE and TRACE+, unless both print alike.",
        notes=(
            *(phrases.absent_tasks(study["tasks"], present, tasks) if rows else [ALONE]),
            *_notes(selected, found, tasks),
        ),
        wide=False,
    )


ALONE = "The main study has results on fewer than two tasks, so no task has others to learn from."
COLUMNS = (
    Column(("task",), shown=False),
    Column(("label",), "Target", align="left"),
    *(
        Column((f"{metric}_{key}",), NAMES[metric], label, better=BETTER[metric])
        for key, label in (("best_baseline", "Best Non-TRACE"), (TRACE_PLUS, "TRACE+"))
        for metric in METRICS
    ),
    *(
        Column((f"{metric}_improvement",), f"Δ{NAMES[metric]}", "Gain", "higher", signed=True)
        for metric in METRICS
    ),
    *(Column((f"{metric}_best_baseline_id",), shown=False) for metric in METRICS),
    *(Column((f"{metric}_{key}_sd",), shown=False) for metric in METRICS for key in SIDES),
    Column(("model",), shown=False),
    Column(("tasks",), shown=False),
)


def _row(duels: Sequence[Duel]) -> Row:
    both = list(zip(duels, METRICS, strict=True))
    sides = [both_sides(duel, metric) for duel, metric in both]
    return (
        *(reference for reference, _ in sides),
        *(value for _, value in sides),
        *(cell(averages.gain(duel.reference, duel.value, metric)) for duel, metric in both),
        *(cell(duel.winner) for duel in duels),
        *(cell(sd) for duel, metric in both for sd in spreads(duel, metric)),
    )


def _caption(selected: pl.DataFrame, model: str, baselines: int) -> str:
    of = phrases.count(baselines, "baseline")
    mean = f" Each value is {phrases.over_splits(selected)}." if len(selected) else ""
    return (
        f"{model}: every estimator is calibrated on the pooled calibration parts of the other "
        f"tasks and measured on the evaluation part of the target. TRACE+ against the best of {of} "
        "so calibrated: an oracle that takes, for each target and for each metric by itself, the "
        "baseline that turned out best on it. AUROC is of the raw score where an estimator has "
        "one, and then the same as with the target's own labels. A gain is positive where TRACE+ "
        f"is better.{mean}"
    )


def _notes(
    selected: pl.DataFrame, found: Mapping[str, Sequence[Duel]], tasks: Labels
) -> Iterator[str]:
    estimators = set(selected["estimator"])
    if found and TRACE_PLUS not in estimators:
        yield "TRACE+ is not among the estimators of this run, so there is nothing to compare."
    elif found and estimators == {TRACE_PLUS}:
        yield "No baseline is among the estimators of this run, so there is nothing to compare."
    for metric in METRICS:
        if where := phrases.undefined(selected, metric, tasks):
            yield f"{NAMES[metric]} undefined and left out: {phrases.listed(where)}."
