"""The baselines that make up Best Non-TRACE of the cross-model comparison."""

import polars as pl

from trace_workflow.tables import improvement_columns as improved
from trace_workflow.tables.improvement_columns import BEST, IMPROVEMENT
from trace_workflow.tables.metric_names import METRIC_NAMES, METRICS
from trace_workflow.tables.standing_notes import count_notes
from trace_workflow.tables.study_results import StudyResults, tasks_of
from trace_workflow.tables.table import Column, Table
from tracecal.estimators.estimator import TRACE_PLUS

NAME = "cross_model_best_estimators"


def table(study: StudyResults) -> Table:
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
            *("right", "answers", "tasks"),
        ),
        columns=_columns(study),
        emphasis=improved.BASELINE_BOLD,
        footnotes=(
            *study.missing_tasks("cross", tasks),
            *(improved.nothing_to_compare(study) or improved.explain_undefined(pairs, study)),
            *improved.explain_unscored_best(frame, study, "model"),
        ),
        notes=(
            *improved.explain_improvements(averages.to_dicts(), study),
            *count_notes(study),
        ),
    )


def _columns(study: StudyResults) -> tuple[Column, ...]:
    best, trace_plus = [], []
    for metric in METRICS:
        name = METRIC_NAMES[metric]
        group = f"Best Non-TRACE for {name}"
        baseline_side, trace_plus_side = improved.side_columns(
            metric, [(name, group), (name, "TRACE+")]
        )
        best += [
            improved.best_column(NAME, metric, "Estimator", group, study, "model"),
            baseline_side,
            improved.gain_column(metric, f"Δ{name}", group),
        ]
        trace_plus.append(trace_plus_side)
    return (
        Column(("label",), "Model", align="left"),
        *improved.chosen_columns(study),
        *best,
        *trace_plus,
    )
