"""How many labels fits need: Brier score and AUROC at fixed numbers of labelled answers."""

import polars as pl

from trace_workflow.analyses.few_labels import METRICS, ORACLE, SIZES
from trace_workflow.tables.captions import listed
from trace_workflow.tables.notes import BEST_OF_COLUMN, BETTER, NAMES, frame_of, marked
from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import Column, Table, ranked
from tracecal.estimators.entry import PICKED

LABELS = {PICKED: "Selected baseline", ORACLE: "Best baseline (oracle)"}
APART = "*"
NOTHING = f"No task of the main study has {2 * SIZES[0]} answers."
EXPLAINED = (
    f"{APART} The interval of the difference to TRACE+ ({{}}, resampling groups of answers) "
    "excludes zero. The selected baseline is, in each split, the one with the smallest log loss on "
    "the same labels; the oracle the best of all baselines in hindsight, a point without an "
    "interval."
)


def table(frames: Frames, settings: Settings) -> Table:
    """From `few_labels`: a row per estimator, columns for each number of labels."""
    found = frames["few_labels"].filter(pl.col("task").is_null())
    labels = {entry.id: entry.label for entry in settings.estimators} | LABELS
    sizes = found["labels"].unique().sort().to_list()
    by_key = {
        (row["labels"], row["metric"], row["estimator"]): row for row in found.iter_rows(named=True)
    }
    rows = []
    for name in found["estimator"].unique(maintain_order=True):
        row = {"estimator": name, "label": labels[name]}
        for size in sizes:
            for metric in METRICS:
                own = by_key.get((size, metric, name), {})
                row[f"{metric}_at_{size}"] = own.get("value")
                row |= {
                    f"{metric}_at_{size}_{end}": own.get(end)
                    for end in ("difference", "low", "high")
                }
        rows.append(row)
    frame = (
        frame_of(rows)
        if rows
        else pl.DataFrame(schema={"estimator": pl.String, "label": pl.String})
    )
    level = f"{100 * found['level'].max():g} %" if rows else ""
    return Table(
        frame=frame.with_columns(**settings.scope(settings.studies["main"]["tasks"])),
        columns=(
            Column(("label",), "Method", align="left"),
            *ranked([_column(metric, size) for size in sizes for metric in METRICS]),
        ),
        emphasis=BEST_OF_COLUMN,
        footnotes=() if rows else (NOTHING,),
        notes=(EXPLAINED.format(level), *_behind(frames, settings)) if rows else (),
    )


def _column(metric: str, size: int) -> Column:
    key = f"{metric}_at_{size}"
    apart = (pl.col(f"{key}_low") > 0) | (pl.col(f"{key}_high") < 0)
    mark = marked((apart.fill_null(False), APART))
    return Column((key,), NAMES[metric], f"{size} labels", better=BETTER[metric], mark=mark)


def _behind(frames: Frames, settings: Settings) -> list[str]:
    """Which tasks have answers enough for a size, and how many answers are evaluated."""
    by_task = (
        frames["few_labels"].drop_nulls("task").unique(["labels", "task"]).sort("labels", "task")
    )
    parts = [
        f"{size} labels: "
        + listed(f"{settings.tasks[row['task']]} ({row['n']:.0f})" for row in of_size.to_dicts())
        for (size,), of_size in by_task.group_by("labels", maintain_order=True)
    ]
    return [
        "All sizes of a task are measured on the same answers, those that the largest leaves; a "
        "task counts where half of its answers suffice. Answers evaluated at "
        f"{'; at '.join(parts)}."
    ]
