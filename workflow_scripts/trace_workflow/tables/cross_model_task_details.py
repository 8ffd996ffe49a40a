"""Behind the cross-model comparison: the best baseline of each task, for each model."""

import polars as pl

from trace_workflow.tables import improvement_columns as improved
from trace_workflow.tables.improvement_columns import BEST, IMPROVEMENT
from trace_workflow.tables.metric_names import METRIC_NAMES, METRICS
from trace_workflow.tables.standing_notes import warn_of_few_answers
from trace_workflow.tables.study_results import StudyResults
from trace_workflow.tables.table import Column, Table
from tracecal.estimators.estimator import TRACE_PLUS

NAME = "cross_model_task_details"
PAIR = ("model", "task")


def table(study: StudyResults) -> Table:
    """From `improvements`: a row per model and task."""
    pairs = study.select("improvements", "cross").filter(pl.col("study").is_null())
    frame = improved.improvement_frame(pairs, study, *PAIR).with_columns(
        improved.best_labels(study),
        label=pl.col("task").replace_strict(study.tasks),
        model_label=pl.col("model").replace_strict(study.models),
    )
    compared = (f"{BEST}_label", BEST, TRACE_PLUS, IMPROVEMENT)
    # As in the paper, only a model's first row has its label.
    first_row = pl.col("model").is_first_distinct()
    once = pl.when(first_row).then("model_label").otherwise(pl.lit(""))
    return Table(
        frame=frame.select(
            *("model", "model_label", "task", "label"),
            *(f"{metric}_{name}" for metric in METRICS for name in compared),
            *improved.detail_columns(),
            *("accuracy", "right", "answers"),
        ),
        columns=(
            Column(("model_label",), "Model", align="left", printed=once),
            Column(("label",), "Task", align="left"),
            *improved.chosen_columns(study),
            *(column for metric in METRICS for column in _columns(metric, study)),
            *improved.count_columns(),
        ),
        section=pl.col("model"),
        emphasis=improved.BASELINE_BOLD,
        footnotes=(
            *(improved.nothing_to_compare(study) or improved.explain_undefined(pairs, study)),
            *improved.explain_unscored_best(frame, study, *PAIR),
        ),
        notes=(
            *improved.explain_improvements(pairs.to_dicts(), study),
            *warn_of_few_answers(study.accuracies, study),
        ),
    )


def _columns(metric: str, study: StudyResults) -> list[Column]:
    group = f"{METRIC_NAMES[metric]} comparison"
    return [
        improved.best_column(NAME, metric, "Best estimator", group, study, *PAIR),
        *improved.side_columns(metric, [("Base", group), ("TRACE+", group)]),
        improved.gain_column(metric, "Δ", group),
    ]
