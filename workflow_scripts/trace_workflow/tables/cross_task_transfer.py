"""TRACE+ against baselines where both are calibrated on the other tasks only."""

import polars as pl

from trace_workflow.tables import improved, notes
from trace_workflow.tables.improved import BEST, IMPROVEMENT
from trace_workflow.tables.notes import METRICS, NAMES, partly_note
from trace_workflow.tables.settings import Frames, Settings, present_tasks
from trace_workflow.tables.table import Column, Table
from tracecal.estimators.entry import TRACE_PLUS

ALONE = "The main study has results on fewer than two tasks, so no task has others to learn from."


def table(frames: Frames, settings: Settings) -> Table:
    """From `cross_task_transfer_improvements`; without rows where there is one task alone."""
    improvements = frames["cross_task_transfer_improvements"].filter(pl.col("study").is_null())
    present, nothing = present_tasks(improvements), improved.nothing_to_compare(settings)
    missing = notes.fewer(frames, settings)
    frame = improved.wide(improvements, frames, settings, "task").with_columns(
        label=pl.col("task").replace_strict(settings.tasks, return_dtype=pl.String),
        **settings.scope(present),
    )
    return Table(
        frame=frame.select(
            *("task", "label"),
            *improved.columns_of(BEST, TRACE_PLUS, IMPROVEMENT),
            *improved.further_columns(),
            *("accuracy", "right", "answers", "model", "tasks"),
        ),
        columns=_columns(missing, settings),
        emphasis=improved.BOLD,
        footnotes=(
            *([*settings.absent_tasks("main", present), *nothing] if present else [ALONE]),
            *partly_note({"": improvements}, settings.tasks),
            *improved.few_notes(missing, frame, settings, "task"),
        ),
        notes=(
            *improved.explained(improvements.to_dicts(), settings),
            *notes.too_few(_others(frames, settings), settings),
        ),
    )


def _others(frames: Frames, settings: Settings) -> list[dict]:
    """For each task the answers to all others, on which its estimators are calibrated."""
    counted = notes.rows(frames, settings)
    total = notes.total(counted)
    rest = [row | {name: total[name] - row[name] for name in total} for row in counted]
    return [row for row in rest if row["n"]]


def _columns(missing: notes.Fewer, settings: Settings) -> tuple[Column, ...]:
    return (
        Column(("label",), "Target", align="left"),
        *improved.chosen_columns(settings),
        *improved.sides(METRICS, missing, "task"),
        *(improved.gain_column(metric, NAMES[metric], "Gain") for metric in METRICS),
        *improved.right_columns(),
    )
