"""The main study's averages on short, medium and long answers."""

from trace_workflow.analyses.length_stratified import STRATA
from trace_workflow.tables.marks import (
    estimator_column,
    explain_partly_undefined,
    explain_unscored,
    mark_partly_undefined,
)
from trace_workflow.tables.metric_names import METRICS
from trace_workflow.tables.standing_notes import refer_to_counts
from trace_workflow.tables.study_results import StudyResults, frame_of, tasks_of
from trace_workflow.tables.table import Column, Table

KEYS = {f"{stratum}_{metric}": (stratum, metric) for stratum in STRATA for metric in METRICS}


def table(study: StudyResults) -> Table:
    """From `length_stratified_averages`: a row per estimator."""
    averages = study.select("length_stratified_averages")
    tasks, measured = tasks_of(averages), set(averages["estimator"])
    entries = [entry for entry in study.estimators if entry.id in measured]
    rows = study.pivot(averages.filter(study="main"), KEYS, ["stratum", "metric"], entries)
    columns = [
        Column(
            tuple(f"{stratum}_{metric}" for metric in METRICS),
            stratum.capitalize(),
            mark=mark_partly_undefined(f"{stratum}_auroc"),
        )
        for stratum in STRATA
    ]
    strata = {f" of {stratum} answers": averages.filter(stratum=stratum) for stratum in STRATA}
    return Table(
        frame=frame_of(rows).with_columns(**study.scope(tasks)),
        columns=(estimator_column("length_stratified", shares=study.scored_shares), *columns),
        footnotes=(
            *study.missing_tasks("main", tasks),
            *explain_partly_undefined(strata, study.tasks),
            *explain_unscored(study),
        ),
        notes=tuple(refer_to_counts(study)),
    )
