"""The main study's averages on short, medium and long answers."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from tracecal.analyse.length_stratified import STRATA
from tracecal.render import averages, phrases
from tracecal.render.averages import BETTER, MISSING, NAMES, Entry
from tracecal.render.table import Column, Row, RowGroup, Table, cell, emphasised

Labels = Mapping[str, str]
KEYS = tuple((stratum, metric) for stratum in STRATA for metric in ("brier", "auroc"))


def length_stratified_table(
    stratified: pl.DataFrame,
    entries: Sequence[Entry],
    models: Labels,
    tasks: Labels,
    study: Mapping,
) -> Table:
    """The table; `stratified` holds metrics with a column `stratum` more."""
    model = study["model"]
    selected = averages.select(stratified, entries, [model], study["tasks"])
    present, found = sorted(set(selected["task"])), set(selected["estimator"])
    overall = {stratum: averages.over_tasks(selected.filter(stratum=stratum)) for stratum in STRATA}

    def row(entry: Entry) -> Row:
        values = [overall[stratum].get((model, entry.id, m), MISSING) for stratum, m in KEYS]
        numbers = [cell(one.mean) for one in values] + [cell(one.sd) for one in values]
        scope = (cell(model), cell(" ".join(present)))
        return (cell(entry.id), cell(entry.label), *numbers, *scope)

    rows = RowGroup(tuple(row(entry) for entry in entries if entry.id in found))
    return Table(
        name="length_stratified",
        title="By answer length",
        caption=f"{models[model]}: short, medium and long answers apart. The strata are thirds of "
        "each task's answers by their number of tokens; answers of one length stay together, in "
        "the third that holds their mean rank. Calibration is that of the main comparison, over "
        f"all lengths. Each value is {phrases.over_splits(selected)}, then over "
        f"{phrases.listed([tasks[task] for task in present])}.",
        columns=COLUMNS,
        groups=emphasised([rows], COLUMNS),
        emphasis=f"Bold: best of the column; underlined: second best; {phrases.ALIKE}.",
        notes=(
            *phrases.absent_tasks(study["tasks"], present, tasks),
            *_undefined(selected, tasks),
        ),
        wide=False,
    )


COLUMNS = (
    Column(("estimator",), shown=False),
    Column(("label",), "Method", align="left"),
    *(
        Column((f"{stratum}_{metric}",), NAMES[metric], stratum.capitalize(), BETTER[metric])
        for stratum, metric in KEYS
    ),
    *(Column((f"{stratum}_{metric}_sd",), shown=False) for stratum, metric in KEYS),
    Column(("model",), shown=False),
    Column(("tasks",), shown=False),
)


def _undefined(selected: pl.DataFrame, tasks: Labels) -> Iterator[str]:
    for stratum, metric in KEYS:
        if where := phrases.undefined(selected.filter(stratum=stratum), metric, tasks):
            yield (
                f"{NAMES[metric]} of {stratum} answers undefined and left out of the means: "
                f"{phrases.listed(where)}."
            )
