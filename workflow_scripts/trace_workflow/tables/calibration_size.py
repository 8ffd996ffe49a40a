"""The main study's averages at several calibration sizes, size by size."""

import polars as pl

from trace_workflow.tables.estimator_rows import PAPER_NAMES
from trace_workflow.tables.marks import (
    UNSCORED,
    explain_partly_undefined,
    explain_unscored,
    mark_partly_undefined,
)
from trace_workflow.tables.metric_names import BETTER, METRIC_NAMES, METRICS
from trace_workflow.tables.ranking import mark_best_of_row
from trace_workflow.tables.standing_notes import refer_to_counts
from trace_workflow.tables.study_results import (
    StudyResults,
    frame_of,
    rows_by,
    summary_columns,
    tasks_of,
)
from trace_workflow.tables.table import Column, Table

SHARE = "calibration_share"


def table(study: StudyResults) -> Table:
    """From `calibration_size_averages`: a row per size and metric, a column per estimator."""
    averages = study.select("calibration_size_averages")
    tasks, shares = tasks_of(averages), sorted(set(averages[SHARE]))
    measured = set(averages["estimator"])
    entries = [entry for entry in study.estimators if entry.id in measured]
    means = rows_by(averages.filter(study="main"), SHARE, "metric", "estimator")
    rows = [
        {SHARE: share, "metric": metric}
        | summary_columns({e.id: means.get((share, metric, e.id), {}) for e in entries})
        for share in shares
        for metric in METRICS
    ]
    names = PAPER_NAMES["calibration_size"]
    unscored = {estimator for *_, estimator in study.scored_shares}
    columns = [
        Column(
            (entry.id,),
            names.get(entry.id, entry.label),
            heading_mark=UNSCORED if entry.id in unscored else "",
            mark=mark_partly_undefined(entry.id),
        )
        for entry in entries
    ]
    percent = pl.col(SHARE).map_elements(format_percent, return_dtype=pl.String)
    once = pl.when(pl.col(SHARE).is_first_distinct()).then(percent).otherwise(pl.lit(""))
    metric = pl.col("metric").replace(METRIC_NAMES)
    parts = {
        f" at {format_percent(share)}": averages.filter(calibration_share=share) for share in shares
    }
    return Table(
        frame=frame_of(rows).with_columns(**study.scope(tasks)),
        columns=(
            Column((SHARE,), "Calib.", align="left", printed=once),
            Column(("metric",), "Metric", align="left", printed=metric),
            *mark_best_of_row(columns, pl.col("metric").replace_strict(BETTER)),
        ),
        section=pl.col(SHARE),
        emphasis="Bold: best of the row; ties, as printed, share the mark.",
        footnotes=(
            *study.missing_tasks("main", tasks),
            *explain_partly_undefined(parts, study.tasks),
            *explain_unscored(study),
        ),
        notes=(
            "Brier: lower is better; AUROC: higher is better.",
            *refer_to_counts(study, shares),
        ),
    )


def format_percent(share: float) -> str:
    return f"{100 * share:.3g}%"
