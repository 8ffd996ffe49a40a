"""The main study's averages at several calibration sizes, size by size."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from tracecal.render import averages, phrases
from tracecal.render.averages import BETTER, MISSING, NAMES, Entry
from tracecal.render.table import Column, Row, RowGroup, Table, cell, emphasised

Labels = Mapping[str, str]
METRICS = ("brier", "auroc")


def calibration_size_table(
    sizes: pl.DataFrame, entries: Sequence[Entry], models: Labels, tasks: Labels, study: Mapping
) -> Table:
    """The table; `sizes` holds metrics with a column `calibration_share` more."""
    model = study["model"]
    selected = averages.select(sizes, entries, [model], study["tasks"])
    present, found = sorted(set(selected["task"])), set(selected["estimator"])
    shares = sorted(set(selected["calibration_share"]))
    parts = {share: selected.filter(calibration_share=share) for share in shares}
    scope = (cell(model), cell(" ".join(present)))

    def row(share: float, overall: averages.ModelAverages, entry: Entry) -> Row:
        values = [overall.get((model, entry.id, metric), MISSING) for metric in METRICS]
        numbers = [cell(one.mean, one.sd) for one in values]
        return (cell(share), cell(entry.id), cell(entry.label), *numbers, *scope)

    def group(share: float, part: pl.DataFrame) -> RowGroup:
        overall = averages.over_tasks(part)
        rows = tuple(row(share, overall, entry) for entry in entries if entry.id in found)
        return RowGroup(rows, f"{percent(share)} for calibration")

    # Best and second best of each size by itself.
    groups = [emphasised([group(*one)], COLUMNS)[0] for one in parts.items()]
    return Table(
        name="calibration_size",
        title="Calibration size",
        caption=f"{models[model]}: estimators calibrated on smaller and larger shares of each "
        "task's answers and measured on the others. The order in which answers join the "
        "calibration part is each split's own, so that a larger part holds the smaller ones. Each "
        f"value is {phrases.over_splits(selected)}, then over "
        f"{phrases.listed([tasks[task] for task in present])}, with its s.d. over splits. AUROC is "
        "of the raw score where an estimator has one: calibration cannot change it, the answers "
        "measured can.",
        columns=COLUMNS,
        groups=tuple(groups),
        emphasis=f"Bold: best at that size; underlined: second best; {phrases.ALIKE}.",
        notes=(
            *phrases.absent_tasks(study["tasks"], present, tasks),
            *_undefined(parts, tasks),
        ),
        wide=False,
    )


COLUMNS = (
    Column(("calibration_share",), shown=False),
    Column(("estimator",), shown=False),
    Column(("label",), "Method", align="left"),
    *(Column((m, f"{m}_sd"), NAMES[m], better=BETTER[m], joint=" ± ") for m in METRICS),
    Column(("model",), shown=False),
    Column(("tasks",), shown=False),
)


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _undefined(parts: Mapping[float, pl.DataFrame], tasks: Labels) -> Iterator[str]:
    for share, part in parts.items():
        for metric in METRICS:
            if where := phrases.undefined(part, metric, tasks):
                yield (
                    f"{NAMES[metric]} at {percent(share)} undefined and left out of the means: "
                    f"{phrases.listed(where)}."
                )
