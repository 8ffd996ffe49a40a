"""Tables on robustness: the representative estimators with fewer labels, abstention, other lengths.

`calibration_size` has the main study's averages at several sizes of the calibration part,
`reliability_selective` calibration and selective prediction on its predictions, pooled over tasks,
and `length_stratified` its averages on short, medium and long answers.
"""

import polars as pl

from trace_workflow.analyses.length_stratified import STRATA
from trace_workflow.analyses.reliability_selective import COVERAGES
from trace_workflow.tables import marks, study_results
from trace_workflow.tables.estimator_rows import PAPER_NAMES
from trace_workflow.tables.metric_names import BETTER, METRIC_NAMES, METRICS
from trace_workflow.tables.ranking_table import BEST_OF_COLUMN, mark_best_of_row, rank_columns
from trace_workflow.tables.standing_notes import refer_to_counts
from trace_workflow.tables.table import Column, Table
from trace_workflow.tables.wording import note

SHARE = "calibration_share"
RISKS = {f"risk_at_{percent}": f"R@{percent}" for percent in COVERAGES}
POOLED_METRICS = {metric: METRIC_NAMES[metric] for metric in ("ece", "brier", "auroc")} | RISKS
STRATUM_METRICS = {
    f"{stratum}_{metric}": (stratum, metric) for stratum in STRATA for metric in METRICS
}


def calibration_size(study: study_results.StudyResults) -> Table:
    """From `calibration_size_averages`: a row per size and metric, a column per estimator."""
    averages = study.select("calibration_size_averages")
    tasks, shares = study_results.tasks_of(averages), sorted(set(averages[SHARE]))
    entries = study.measured(averages)
    means = study_results.rows_by(averages.filter(study="main"), SHARE, "metric", "estimator")
    rows = [
        {SHARE: share, "metric": metric}
        | study_results.summary_columns(
            {e.id: means.get((share, metric, e.id), {}) for e in entries}
        )
        for share in shares
        for metric in METRICS
    ]
    names = PAPER_NAMES["calibration_size"]
    unscored = {estimator for *_, estimator in study.scored_shares}
    columns = [
        Column(
            (entry.id,),
            names.get(entry.id, entry.label),
            heading_mark=marks.UNSCORED if entry.id in unscored else "",
            mark=marks.mark_partly_undefined(entry.id),
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
        frame=study_results.frame_of(rows).with_columns(**study.scope(tasks)),
        columns=(
            Column((SHARE,), "Calib.", align="left", printed=once),
            Column(("metric",), "Metric", align="left", printed=metric),
            *mark_best_of_row(columns, pl.col("metric").replace_strict(BETTER)),
        ),
        section=pl.col(SHARE),
        emphasis="Bold: best of the row; ties, as printed, share the mark.",
        footnotes=(
            *study.missing_tasks("main", tasks),
            *marks.explain_partly_undefined(parts, study.tasks),
            *marks.explain_unscored(study),
        ),
        notes=("Brier: lower is better; AUROC: higher is better.", *refer_to_counts(study)),
    )


def format_percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def reliability_selective(study: study_results.StudyResults) -> Table:
    """From `reliability_selective_averages`: a row per estimator."""
    averages = study.frames["reliability_selective_averages"]
    rows = study.pivot(averages, {metric: (metric,) for metric in POOLED_METRICS}, ["metric"])
    # Of the metrics only the AUROC can be undefined.
    undefined_splits = [f"{name}_undefined_splits" for name in POOLED_METRICS if name != "auroc"]
    columns = [
        Column(
            (metric,),
            label,
            better=BETTER.get(metric, "lower"),
            mark=marks.mark_partly_undefined(metric) if metric == "auroc" else None,
        )
        for metric, label in POOLED_METRICS.items()
    ]
    aurocs = averages.filter(metric="auroc")
    undefined, splits = aurocs["undefined"].max(), aurocs["splits"].max()
    tasks = [row["task"] for row in study.accuracies]
    return Table(
        frame=study_results.frame_of(rows)
        .drop(undefined_splits)
        .with_columns(**study.scope(tasks)),
        columns=(
            marks.estimator_column("reliability_selective", shares=study.scored_shares),
            *rank_columns(columns),
        ),
        emphasis=BEST_OF_COLUMN,
        footnotes=(
            *study.missing_tasks("main", tasks),
            *note(marks.LEFT_OUT, [f"{undefined} of {splits} splits"] if undefined else []),
            *marks.explain_unscored(study),
        ),
        notes=tuple(refer_to_counts(study)),
    )


def length_stratified(study: study_results.StudyResults) -> Table:
    """From `length_stratified_averages`: a row per estimator."""
    averages = study.select("length_stratified_averages")
    tasks, by = study_results.tasks_of(averages), ["stratum", "metric"]
    entries = study.measured(averages)
    rows = study.pivot(averages.filter(study="main"), STRATUM_METRICS, by, entries)
    columns = [
        Column(
            tuple(f"{stratum}_{metric}" for metric in METRICS),
            stratum.capitalize(),
            mark=marks.mark_partly_undefined(f"{stratum}_auroc"),
        )
        for stratum in STRATA
    ]
    strata = {f" of {stratum} answers": averages.filter(stratum=stratum) for stratum in STRATA}
    return Table(
        frame=study_results.frame_of(rows).with_columns(**study.scope(tasks)),
        columns=(marks.estimator_column("length_stratified", shares=study.scored_shares), *columns),
        footnotes=(
            *study.missing_tasks("main", tasks),
            *marks.explain_partly_undefined(strata, study.tasks),
            *marks.explain_unscored(study),
        ),
        notes=tuple(refer_to_counts(study)),
    )
