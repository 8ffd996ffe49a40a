"""Behind the cross-model comparison: the best baseline of each task, for each model."""

import polars as pl

from tracecal.tables import improved
from tracecal.tables.improved import BEST, IMPROVEMENT, TRACE_PLUS
from tracecal.tables.phrases import METRICS, NAMES
from tracecal.tables.settings import Frames, Settings
from tracecal.writers.table import Column, Table


def table(frames: Frames, settings: Settings) -> Table:
    """From `improvements`: a row per model and task."""
    pairs = settings.select(frames["improvements"], "cross").filter(pl.col("study").is_null())
    usual = [
        *improved.explained(pairs.to_dicts()),
        *improved.partly_undefined(pairs, settings.models, settings.tasks),
    ]
    frame = improved.wide(pairs, "model", "task").with_columns(
        improved.best_labels(settings), label=pl.col("task").replace_strict(settings.tasks)
    )
    shown = (f"{BEST}_label", BEST, TRACE_PLUS, IMPROVEMENT)
    return Table(
        name="cross_model_task_details",
        title=settings.title,
        caption=settings.caption,
        frame=frame.select(
            *("model", "task", "label"),
            *(f"{metric}_{name}" for metric in METRICS for name in shown),
            *improved.further_columns(),
        ),
        columns=(
            Column(("label",), "Task", align="left"),
            *(column for metric in METRICS for column in _columns(metric)),
        ),
        section=pl.col("model"),
        titles=settings.models,
        emphasis=improved.BETTER_BOLD,
        notes=tuple(improved.nothing_to_compare(settings) or usual),
    )


def _columns(metric: str) -> list[Column]:
    group = f"{NAMES[metric]} comparison"
    return [
        Column((f"{metric}_{BEST}_label",), "Best estimator", group, align="left"),
        *improved.side_columns(metric, [("Base", group), ("TRACE+", group)]),
        improved.gain_column(metric, "Δ", group),
    ]
