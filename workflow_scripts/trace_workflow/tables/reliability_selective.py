"""Calibration and selective prediction on the main study's predictions, pooled over tasks."""

from trace_workflow.analyses.reliability_selective import COVERAGES
from trace_workflow.tables.marks import (
    LEFT_OUT,
    estimator_column,
    explain_unscored,
    mark_partly_undefined,
)
from trace_workflow.tables.metric_names import BETTER, METRIC_NAMES
from trace_workflow.tables.ranking import BEST_OF_COLUMN, rank_columns
from trace_workflow.tables.standing_notes import refer_to_counts
from trace_workflow.tables.study_results import StudyResults, frame_of
from trace_workflow.tables.table import Column, Table
from trace_workflow.tables.wording import note

RISKS = {f"risk_at_{percent}": f"R@{percent}" for percent in COVERAGES}
METRICS = {metric: METRIC_NAMES[metric] for metric in ("ece", "brier", "auroc")} | RISKS


def table(study: StudyResults) -> Table:
    """From `reliability_selective_averages`: a row per estimator."""
    averages = study.frames["reliability_selective_averages"]
    rows = study.pivot(averages, {metric: (metric,) for metric in METRICS}, ["metric"])
    # Of the metrics only the AUROC can be undefined.
    undefined_splits = [f"{metric}_undefined_splits" for metric in METRICS if metric != "auroc"]
    columns = [
        Column(
            (metric,),
            label,
            better=BETTER.get(metric, "lower"),
            mark=mark_partly_undefined(metric) if metric == "auroc" else None,
        )
        for metric, label in METRICS.items()
    ]
    aurocs = averages.filter(metric="auroc")
    undefined, splits = aurocs["undefined"].max(), aurocs["splits"].max()
    tasks = [row["task"] for row in study.accuracies]
    return Table(
        frame=frame_of(rows).drop(undefined_splits).with_columns(**study.scope(tasks)),
        columns=(
            estimator_column("reliability_selective", shares=study.scored_shares),
            *rank_columns(columns),
        ),
        emphasis=BEST_OF_COLUMN,
        footnotes=(
            *study.missing_tasks("main", tasks),
            *note(LEFT_OUT, [f"{undefined} of {splits} splits"] if undefined else []),
            *explain_unscored(study),
        ),
        notes=tuple(refer_to_counts(study)),
    )
