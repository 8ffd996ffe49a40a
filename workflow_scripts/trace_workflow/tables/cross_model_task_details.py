"""Behind the cross-model comparison: the best baseline of each task, for each model."""

import polars as pl

from trace_workflow.tables import improved, notes
from trace_workflow.tables.improved import BEST, IMPROVEMENT
from trace_workflow.tables.notes import METRICS, NAMES
from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import Column, Table
from tracecal.estimators.entry import TRACE_PLUS

NAME = "cross_model_task_details"
SCOPE = ("model", "task")


def table(frames: Frames, settings: Settings) -> Table:
    """From `improvements`: a row per model and task."""
    pairs = settings.select(frames["improvements"], "cross").filter(pl.col("study").is_null())
    missing, nothing = notes.fewer(frames, settings), improved.nothing_to_compare(settings)
    frame = improved.wide(pairs, frames, settings, *SCOPE).with_columns(
        improved.best_labels(settings),
        label=pl.col("task").replace_strict(settings.tasks),
        model_label=pl.col("model").replace_strict(settings.models),
    )
    shown = (f"{BEST}_label", BEST, TRACE_PLUS, IMPROVEMENT)
    # As in the paper, only a model's first row has its label.
    first = pl.col("model").is_first_distinct()
    once = pl.when(first).then("model_label").otherwise(pl.lit(""))
    return Table(
        frame=frame.select(
            *("model", "model_label", "task", "label"),
            *(f"{metric}_{name}" for metric in METRICS for name in shown),
            *improved.further_columns(),
            *("accuracy", "right", "answers"),
        ),
        columns=(
            Column(("model_label",), "Model", align="left", printed=once),
            Column(("label",), "Task", align="left"),
            *improved.chosen_columns(settings),
            *(column for metric in METRICS for column in _columns(metric, missing)),
            *improved.right_columns(),
        ),
        section=pl.col("model"),
        emphasis=improved.BETTER_BOLD,
        footnotes=(
            *(nothing or improved.partly_undefined(pairs, settings)),
            *improved.few_notes(missing, frame, settings, *SCOPE),
        ),
        notes=(
            *improved.explained(pairs.to_dicts(), settings),
            *notes.too_few(notes.rows(frames, settings), settings),
        ),
    )


def _columns(metric: str, missing: notes.Fewer) -> list[Column]:
    group = f"{NAMES[metric]} comparison"
    return [
        improved.best_column(NAME, metric, "Best estimator", group, missing, *SCOPE),
        *improved.side_columns(metric, [("Base", group), ("TRACE+", group)]),
        improved.gain_column(metric, "Δ", group),
    ]
