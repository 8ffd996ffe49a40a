"""The baselines that make up Best Non-TRACE of the cross-model comparison."""

import polars as pl

from trace_workflow.tables import improved, notes
from trace_workflow.tables.improved import BEST, IMPROVEMENT
from trace_workflow.tables.notes import METRICS, NAMES
from trace_workflow.tables.settings import Frames, Settings, present_tasks
from trace_workflow.tables.table import Column, Table
from tracecal.estimators.entry import TRACE_PLUS

NAME = "cross_model_best_estimators"


def table(frames: Frames, settings: Settings) -> Table:
    """From `improvements`: a row per model, averaged over tasks."""
    chosen = settings.select(frames["improvements"], "cross")
    present = present_tasks(chosen)
    averages = chosen.filter(study="cross").drop_nulls("model")
    pairs = chosen.filter(pl.col("study").is_null())
    missing, nothing = notes.fewer(frames, settings), improved.nothing_to_compare(settings)
    frame = improved.wide(averages, frames, settings, "model").with_columns(
        improved.best_labels(settings),
        label=pl.col("model").replace_strict(settings.models),
        tasks=pl.lit(" ".join(present)),
    )
    shown = (f"{BEST}_label", BEST, IMPROVEMENT)
    return Table(
        frame=frame.select(
            *("model", "label"),
            *(f"{metric}_{name}" for metric in METRICS for name in shown),
            *improved.columns_of(TRACE_PLUS),
            *improved.further_columns(),
            *("right", "answers", "tasks"),
        ),
        columns=_columns(missing, settings),
        emphasis=improved.BETTER_BOLD,
        footnotes=(
            *settings.absent_tasks("cross", present),
            *(nothing or improved.partly_undefined(pairs, settings)),
            *improved.few_notes(missing, frame, settings, "model"),
        ),
        notes=(
            *improved.explained(averages.to_dicts(), settings),
            *notes.notes(frames, settings),
        ),
    )


def _columns(missing: notes.Fewer, settings: Settings) -> tuple[Column, ...]:
    best, own = [], []
    for metric in METRICS:
        group = f"Best Non-TRACE for {NAMES[metric]}"
        sides = improved.side_columns(metric, [(NAMES[metric], group), (NAMES[metric], "TRACE+")])
        best += [
            improved.best_column(NAME, metric, "Estimator", group, missing, "model"),
            sides[0],
            improved.gain_column(metric, f"Δ{NAMES[metric]}", group),
        ]
        own.append(sides[1])
    return (
        Column(("label",), "Model", align="left"),
        *improved.chosen_columns(settings),
        *best,
        *own,
    )
