"""TRACE+ against the best baseline where both are calibrated on the other tasks only."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from tracecal.render import averages, phrases
from tracecal.render.averages import NAMES, Entry
from tracecal.render.bounds import Bounds, explained, read_bounds
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
    side_cells,
    value_column,
)
from tracecal.render.table import Column, Row, RowGroup, Table, cell

Labels = Mapping[str, str]


def cross_task_transfer_table(
    transferred: pl.DataFrame,
    intervals: pl.DataFrame,
    entries: Sequence[Entry],
    models: Labels,
    tasks: Labels,
    study: Mapping,
) -> Table:
    """The table; `transferred` holds metrics on each target, `intervals` those of the gains.

    Neither has a row where there is one task.
    """
    model = study["model"]
    baselines = [entry for entry in entries if entry.role == "baseline"]
    compared = [entry for entry in entries if entry.id == TRACE_PLUS or entry in baselines]
    own = transferred.filter(model=model)
    selected = averages.select(own, compared, [model], study["tasks"]) if len(own) else own
    present = sorted(set(selected["task"]))
    bounds = read_bounds(intervals)
    found = {
        task: [
            duel(
                selected.filter(task=task),
                model,
                baselines,
                metric,
                bounds.get((None, model, task, metric), Bounds()),
            )
            for metric in METRICS
        ]
        for task in present
    }
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
            *_notes(selected, intervals, found, tasks),
        ),
        wide=False,
    )


ALONE = "The main study has results on fewer than two tasks, so no task has others to learn from."
COLUMNS = (
    Column(("task",), shown=False),
    Column(("label",), "Target", align="left"),
    *(
        value_column(side, metric, NAMES[metric], label)
        for side, label in ((BEST, "Best Non-TRACE"), (TRACE_PLUS, "TRACE+"))
        for metric in METRICS
    ),
    *(gain_column(metric, f"Δ{NAMES[metric]}", "Gain") for metric in METRICS),
    *(column for metric in METRICS for column in hidden_columns(metric)),
    Column(("model",), shown=False),
    Column(("tasks",), shown=False),
)


def _row(duels: Sequence[Duel]) -> Row:
    sides = [side_cells(one) for one in duels]
    return (
        *(reference for reference, _ in sides),
        *(value for _, value in sides),
        *(gain_cell(one) for one in duels),
        *(hidden for one in duels for hidden in hidden_cells(one)),
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
    selected: pl.DataFrame,
    intervals: pl.DataFrame,
    found: Mapping[str, Sequence[Duel]],
    tasks: Labels,
) -> Iterator[str]:
    if found:
        marked = any(one.unsupported for duels in found.values() for one in duels)
        yield from nothing_to_compare(selected) or explained(intervals, marked)
    for metric in METRICS:
        if where := phrases.undefined(selected, metric, tasks):
            yield f"{NAMES[metric]} undefined and left out: {phrases.listed(where)}."
