"""The table of cascades' guarantees: thresholds on the small model's probability."""

import polars as pl

from trace_workflow.tables.study_results import StudyResults
from trace_workflow.tables.table import Column, Table

NOTHING = "No two models share a task."
NOTE = (
    "Each guarantee holds by itself, with confidence {confidence:g}, for questions of further "
    "groups like the tested ones. The CSV file has the largest number of questions with which a "
    "group counts. At most x below: the accuracy of the cascade is at most x below that of the "
    "large model alone. A dash: no threshold gives the guarantee, and every question is escalated; "
    "the CSV file says why."
)


def table(study: StudyResults) -> Table:
    """A section per pair of models, a row per guarantee, from the analysis of the same name."""
    guarantees = study.frames["cascade_promises"]
    below = pl.format("at most {} below", pl.col("promised"))
    at_least = pl.format("at least {}", pl.col("promised"))
    rows = guarantees.with_columns(
        task_label=pl.col("task").replace(study.tasks),
        promise_label=pl.when(promise="below").then(below).otherwise(at_least),
    ).sort("small", "large", maintain_order=True)
    titles = {
        f"{small} {large}": f"{study.models[small]} to {study.models[large]}"
        for small, large in rows.select("small", "large").unique(maintain_order=True).iter_rows()
    }
    accuracies = {"small_accuracy": "Small", "accuracy": "Cascade", "large_accuracy": "Large"}
    return Table(
        frame=rows,
        columns=(
            Column(("task_label",), "Task", align="left"),
            Column(("promise_label",), "Guarantee", align="left"),
            Column(("threshold",), "Threshold", decimals=3),
            _percent("escalated", "Escalated, %", "", 0),
            *(_percent(name, label, "Accuracy, %", 1) for name, label in accuracies.items()),
            Column(("groups",), "Groups"),
        ),
        section=pl.concat_str("small", "large", separator=" ") if rows.height else None,
        titles=titles,
        footnotes=() if rows.height else (NOTHING,),
        notes=(NOTE.format(confidence=guarantees["confidence"][0]),) if rows.height else (),
    )


def _percent(key: str, label: str, group: str, decimals: int) -> Column:
    return Column((key,), label, group, decimals=decimals, printed=100 * pl.col(key))
