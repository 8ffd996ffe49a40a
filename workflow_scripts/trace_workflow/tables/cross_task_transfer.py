"""TRACE+ against baselines where both are calibrated on the other tasks only."""

import polars as pl

from trace_workflow.tables import improvement_columns as improved
from trace_workflow.tables.improvement_columns import BEST, IMPROVEMENT
from trace_workflow.tables.marks import explain_partly_undefined
from trace_workflow.tables.metric_names import METRIC_NAMES, METRICS
from trace_workflow.tables.standing_notes import sum_counts, warn_of_few_answers
from trace_workflow.tables.study_results import StudyResults, tasks_of
from trace_workflow.tables.table import Column, Table
from tracecal.estimators.estimator import TRACE_PLUS

ALONE = "The main study has results on fewer than two tasks, so no task has others to learn from."


def table(study: StudyResults) -> Table:
    """From `cross_task_transfer_improvements`: a row per target, none where there is one task."""
    improvements = study.frames["cross_task_transfer_improvements"]
    improvements = improvements.filter(pl.col("study").is_null())
    tasks = tasks_of(improvements)
    frame = improved.improvement_frame(improvements, study, "task").with_columns(
        label=pl.col("task").replace_strict(study.tasks, return_dtype=pl.String),
        **study.scope(tasks),
    )
    missing = [*study.missing_tasks("main", tasks), *improved.nothing_to_compare(study)]
    # For each target the answers to all other tasks, which calibrate its estimators.
    total = sum_counts(study.accuracies)
    sources = [row | {name: total[name] - row[name] for name in total} for row in study.accuracies]
    return Table(
        frame=frame.select(
            *("task", "label"),
            *improved.metric_columns(BEST, TRACE_PLUS, IMPROVEMENT),
            *improved.detail_columns(),
            *("accuracy", "right", "answers", "model", "tasks"),
        ),
        columns=(
            Column(("label",), "Target", align="left"),
            *improved.chosen_columns(study),
            *improved.all_side_columns(METRICS, study, "task"),
            *(improved.gain_column(metric, METRIC_NAMES[metric], "Gain") for metric in METRICS),
            *improved.count_columns(),
        ),
        emphasis=improved.BEST_BOLD,
        footnotes=(
            *(missing if tasks else [ALONE]),
            *explain_partly_undefined({"": improvements}, study.tasks),
            *improved.explain_unscored_best(frame, study, "task"),
        ),
        notes=(
            *improved.explain_improvements(improvements.to_dicts(), study),
            *warn_of_few_answers([row for row in sources if row["n"]], study),
        ),
    )
