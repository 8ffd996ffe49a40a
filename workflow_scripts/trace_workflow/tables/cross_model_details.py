"""Tables behind the cross-model comparison: its best baselines, for each model and each task.

`cross_model_best_estimators` has the baselines that make up Best Non-TRACE, averaged over tasks,
and `cross_model_task_details` the best baseline of each task.
"""

import polars as pl

from trace_workflow.tables import improvement_columns as improved
from trace_workflow.tables.improvement_columns import BEST, IMPROVEMENT
from trace_workflow.tables.metric_names import METRIC_NAMES, METRICS
from trace_workflow.tables.standing_notes import count_notes, warn_of_few_answers
from trace_workflow.tables.study_results import StudyResults, tasks_of
from trace_workflow.tables.table import Column, Table
from tracecal.estimators.estimator import TRACE_PLUS

PAIR = ("model", "task")


def cross_model_best_estimators(study: StudyResults) -> Table:
    """From `improvements`: a row per model, averaged over tasks."""
    improvements = study.select("improvements", "cross")
    tasks = tasks_of(improvements)
    averages = improvements.filter(study="cross").drop_nulls("model")
    pairs = improvements.filter(pl.col("study").is_null())
    frame = improved.improvement_frame(averages, study, "model").with_columns(
        improved.best_labels(study),
        label=pl.col("model").replace_strict(study.models),
        tasks=pl.lit(" ".join(tasks)),
    )
    best = (f"{BEST}_label", BEST, IMPROVEMENT)
    return Table(
        frame=frame.select(
            *("model", "label"),
            *(f"{metric}_{name}" for metric in METRICS for name in best),
            *improved.metric_columns(TRACE_PLUS),
            *improved.detail_columns(),
            *improved.own_names(study),
            *("right", "answers", "tasks"),
        ),
        columns=_columns_of_models(study),
        emphasis=improved.BASELINE_BOLD,
        footnotes=(
            *study.missing_tasks("cross", tasks),
            *(improved.nothing_to_compare(study) or improved.explain_undefined(pairs, study)),
            *improved.explain_unscored_best(frame, study, "model"),
        ),
        notes=(*improved.explain_improvements(averages.to_dicts(), study), *count_notes(study)),
    )


def _columns_of_models(study: StudyResults) -> tuple[Column, ...]:
    best, trace_plus = [], []
    for metric in METRICS:
        name = METRIC_NAMES[metric]
        group = f"Best Non-TRACE for {name}"
        baseline_side, trace_plus_side = improved.side_columns(
            metric, [(name, group), (name, "TRACE+")]
        )
        best += [
            improved.best_column(
                "cross_model_best_estimators", metric, "Estimator", group, study, "model"
            ),
            baseline_side,
            improved.gain_column(metric, f"Δ{name}", group),
        ]
        trace_plus.append(trace_plus_side)
    return (
        Column(("label",), "Model", align="left"),
        *improved.chosen_columns(study),
        *best,
        *trace_plus,
        *improved.own_columns(study),
    )


def cross_model_task_details(study: StudyResults) -> Table:
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
            *improved.own_names(study),
            *("accuracy", "right", "answers"),
        ),
        columns=(
            Column(("model_label",), "Model", align="left", printed=once),
            Column(("label",), "Task", align="left"),
            *improved.chosen_columns(study),
            *(column for metric in METRICS for column in _columns_of_tasks(metric, study)),
            *improved.own_columns(study),
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


def _columns_of_tasks(metric: str, study: StudyResults) -> list[Column]:
    group = f"{METRIC_NAMES[metric]} comparison"
    return [
        improved.best_column(
            "cross_model_task_details", metric, "Best estimator", group, study, *PAIR
        ),
        *improved.side_columns(metric, [("Base", group), ("TRACE+", group)]),
        improved.gain_column(metric, "Δ", group),
    ]
