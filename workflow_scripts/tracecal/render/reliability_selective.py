"""Calibration and selective prediction on the main study's predictions, pooled over tasks."""

from collections.abc import Mapping, Sequence

import polars as pl

from tracecal.analyse.reliability_selective import COVERAGES
from tracecal.render import averages, phrases
from tracecal.render.averages import BETTER, MISSING, NAMES, Entry
from tracecal.render.table import Column, Row, RowGroup, Table, cell, emphasised

Labels = Mapping[str, str]
RISKS = {f"risk_at_{percent}": f"R@{percent}" for percent in COVERAGES}
METRICS = {metric: NAMES[metric] for metric in ("ece", "brier", "auroc")} | RISKS
POOLED = "pooled"


def reliability_selective_table(
    pooled: pl.DataFrame, entries: Sequence[Entry], models: Labels, tasks: Labels, study: Mapping
) -> Table:
    """The table; `pooled` holds metrics with `tasks`, the ids of those that were pooled."""
    model = study["model"]
    selected = averages.select(pooled.with_columns(task=pl.lit(POOLED)), entries, [model], [POOLED])
    values, found = averages.per_task(selected), set(selected["estimator"])
    ids = selected["tasks"][0]
    present = ids.split()

    def row(entry: Entry) -> Row:
        measured = [values.get((model, POOLED, entry.id, metric), MISSING) for metric in METRICS]
        numbers = [cell(one.mean) for one in measured] + [cell(one.sd) for one in measured]
        return (cell(entry.id), cell(entry.label), *numbers, cell(model), cell(ids))

    rows = RowGroup(tuple(row(entry) for entry in entries if entry.id in found))
    undefined = phrases.undefined(selected, "auroc", {POOLED: "there is one class"})
    return Table(
        name="reliability_selective",
        title="Reliability and selective prediction",
        caption=f"{models[model]}: calibrated probabilities, those of "
        f"{phrases.listed([tasks[task] for task in present])} pooled within each split. AUROC, and "
        "which answers are kept, go by these probabilities, for raw scores of different tasks "
        "share no scale. R@k is the error rate among the k % most confident answers, ties in "
        f"expectation. Each value is {phrases.over_splits(selected)}.",
        columns=COLUMNS,
        groups=emphasised([rows], COLUMNS),
        emphasis=f"Bold: best of the column; underlined: second best; {phrases.ALIKE}.",
        notes=(
            *phrases.absent_tasks(study["tasks"], present, tasks),
            *(f"AUROC undefined and left out of the mean where {where}." for where in undefined),
        ),
        wide=False,
    )


COLUMNS = (
    Column(("estimator",), shown=False),
    Column(("label",), "Method", align="left"),
    *(Column((m,), label, better=BETTER.get(m, "lower")) for m, label in METRICS.items()),
    *(Column((f"{metric}_sd",), shown=False) for metric in METRICS),
    Column(("model",), shown=False),
    Column(("tasks",), shown=False),
)
