"""How many labels fits need: Brier score and AUROC at fixed numbers of labelled answers."""

import polars as pl

from trace_workflow.analyses.few_labels import METRICS, ORACLE, SIZES
from trace_workflow.tables.marks import excludes_zero, mark_where
from trace_workflow.tables.metric_names import BETTER, METRIC_NAMES
from trace_workflow.tables.ranking_table import BEST_OF_COLUMN, rank_columns
from trace_workflow.tables.study_results import StudyResults, frame_of, rows_by
from trace_workflow.tables.table import Column, Table
from trace_workflow.tables.wording import join_names
from tracecal.estimators.estimator import PICKED

LABELS = {PICKED: "Selected baseline", ORACLE: "Best baseline (oracle)"}
DIFFERENT = "*"
NOTHING = f"No task of the main study has {2 * SIZES[0]} answers."
DIFFERENCE_NOTE = (
    f"{DIFFERENT} The interval of the difference to TRACE+ ({{}}, resampling groups of answers) "
    "excludes zero. The selected baseline has, in each split, the smallest log loss on the same "
    "labels; the oracle is the best baseline in hindsight, a point without an interval."
)
NO_ROWS = {"estimator": pl.String, "label": pl.String}


def table(study: StudyResults) -> Table:
    """From the analysis of the same name: a row per estimator, columns per number of labels."""
    means = study.frames["few_labels"].filter(pl.col("task").is_null())
    labels = study.labels | LABELS
    sizes = means["labels"].unique().sort().to_list()
    by_key = rows_by(means, "labels", "metric", "estimator")
    rows = []
    for estimator in means["estimator"].unique(maintain_order=True):
        row = {"estimator": estimator, "label": labels[estimator]}
        for size in sizes:
            for metric in METRICS:
                values, key = by_key.get((size, metric, estimator), {}), f"{metric}_at_{size}"
                row |= {key: values.get("value")}
                row |= {f"{key}_{end}": values.get(end) for end in ("difference", "low", "high")}
        rows.append(row)
    frame = frame_of(rows) if rows else pl.DataFrame(schema=NO_ROWS)
    level = f"{100 * means['level'].max():g} %" if rows else ""
    return Table(
        frame=frame.with_columns(**study.scope(study.studies["main"]["tasks"])),
        columns=(
            Column(("label",), "Method", align="left"),
            *rank_columns([_column(metric, size) for size in sizes for metric in METRICS]),
        ),
        emphasis=BEST_OF_COLUMN,
        footnotes=() if rows else (NOTHING,),
        notes=(DIFFERENCE_NOTE.format(level), _explain_tasks(study)) if rows else (),
    )


def _column(metric: str, size: int) -> Column:
    key = f"{metric}_at_{size}"
    return Column(
        (key,),
        METRIC_NAMES[metric],
        f"{size} labels",
        better=BETTER[metric],
        mark=mark_where((excludes_zero(key), DIFFERENT)),
    )


def _explain_tasks(study: StudyResults) -> str:
    """A note on the tasks with enough answers for each size, and on the evaluated answers."""
    by_task = study.frames["few_labels"].drop_nulls("task").unique(["labels", "task"])
    parts = [
        f"{size} labels: "
        + join_names([f"{study.tasks[row['task']]} ({row['n']:.0f})" for row in tasks.to_dicts()])
        for (size,), tasks in by_task.sort("labels", "task").group_by("labels", maintain_order=True)
    ]
    return (
        "All sizes of a task are evaluated on the same answers, those beyond the largest size; a "
        "task counts where half of its answers suffice. Evaluated answers at "
        f"{'; at '.join(parts)}."
    )
