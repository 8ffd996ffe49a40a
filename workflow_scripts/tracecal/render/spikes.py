"""The two tables of the spike analysis: error rates by stratum, and what the features predict."""

from collections.abc import Mapping

import polars as pl

from tracecal.render import averages, phrases
from tracecal.render.averages import BETTER, NAMES
from tracecal.render.table import Column, Row, RowGroup, Table, cell, emphasised

Labels = Mapping[str, str]
STRATA = ("n", "mean_risk", "spike_gap", "incorrect_rate")
HIDDEN = ("incorrect", "incorrect_rate_low", "incorrect_rate_high", "model", "tasks")
FEATURE_SETS = {
    "mean_risk": "Mean risk",
    "max_token_risk": "Max token risk",
    "spike_gap": "Spike gap",
    "mean_risk_and_spike_gap": "Mean risk + spike gap",
    "trace_local": "TRACE local features",
}
RISK = (
    "A token's risk is its entropy (nats), mean risk its average over the answer; the spike gap is "
    "by how much the answer's most uncertain window of four tokens exceeds that average."
)


def spike_strata_table(
    strata: pl.DataFrame, models: Labels, tasks: Labels, study: Mapping
) -> Table:
    """The table of `tracecal.analyse.spike_strata`, in the paper's order of strata."""
    columns = (
        Column(("risk_stratum",), shown=False),
        Column(("spike_stratum",), shown=False),
        Column(("risk",), "Mean risk", "Stratum", align="left"),
        Column(("spike",), "Spike gap", "Stratum", align="left"),
        Column(("n",), "n", align="right"),
        Column(("mean_risk",), "Mean risk", align="right"),
        Column(("spike_gap",), "Spike gap", align="right"),
        Column(("incorrect_rate",), "Incorrect", align="right"),
        *(Column((key,), shown=False) for key in HIDDEN),
    )

    def row(one: Mapping) -> Row:
        names = (one["risk_stratum"], one["spike_stratum"])
        shown = [*names, *(name.capitalize() for name in names)]
        return tuple(cell(v) for v in (*shown, *(one[key] for key in (*STRATA, *HIDDEN))))

    groups = [
        RowGroup(tuple(map(row, part.iter_rows(named=True))))
        for _, part in strata.group_by("risk_stratum", maintain_order=True)
    ]
    empty = strata["n"].min() == 0
    return Table(
        name="spike_strata",
        title="Errors by mean risk and spike gap",
        caption=f"{_pooled(strata, models, tasks)}, cut into terciles of mean risk, and each of "
        f"those at its median spike gap. {RISK} Incorrect: the share of wrong answers.",
        columns=columns,
        groups=tuple(groups),
        notes=(
            *_absent(strata, tasks, study),
            *(["– No answer: half of the tercile or more has a gap of 0."] if empty else []),
        ),
        wide=False,
    )


def spike_modeling_table(
    modeling: pl.DataFrame, models: Labels, tasks: Labels, study: Mapping
) -> Table:
    """The table of `tracecal.analyse.spike_modeling`: mean ± s.d. over splits."""
    metrics = ("auroc", "brier")
    columns = (
        Column(("features",), shown=False),
        Column(("label",), "Feature set", align="left"),
        *(
            Column((metric, f"{metric}_sd"), NAMES[metric], better=BETTER[metric], joint=" ± ")
            for metric in metrics
        ),
        Column(("n",), shown=False),
        Column(("model",), shown=False),
        Column(("tasks",), shown=False),
    )

    def row(features: str) -> Row:
        mine = modeling.filter(features=features).sort("split")
        values = {metric: mine.filter(metric=metric)["value"] for metric in metrics}
        return (
            cell(features),
            cell(FEATURE_SETS[features]),
            *(cell(values[m].mean(), averages.spread(values[m])) for m in metrics),
            cell(mine["n"].mean()),
            cell(mine["model"][0]),
            cell(mine["tasks"][0]),
        )

    present = set(modeling["features"])
    groups = [RowGroup(tuple(row(features) for features in FEATURE_SETS if features in present))]
    undefined = modeling["value"].null_count()
    return Table(
        name="spike_modeling",
        title="What mean risk and spikes predict",
        caption=f"{_pooled(modeling, models, tasks)}: correctness predicted from few features of "
        f"the token risks, one calibrator for all tasks together. {RISK} TRACE local features: "
        "entropies and surprisals weighted towards the beginning of the answer. Each value is "
        f"{phrases.over_splits(modeling)}, ± their s.d.",
        columns=columns,
        groups=emphasised(groups, columns),
        emphasis=f"Bold: best of the column; underlined: second best; {phrases.ALIKE}.",
        notes=(
            *_absent(modeling, tasks, study),
            *(
                ["– Undefined where a split's answers are all right or all wrong."]
                * bool(undefined)
            ),
        ),
        wide=False,
    )


def _pooled(found: pl.DataFrame, models: Labels, tasks: Labels) -> str:
    names = phrases.listed([tasks[task] for task in found["tasks"][0].split()])
    return f"{models[found['model'][0]]}: the answers to {names}, pooled"


def _absent(found: pl.DataFrame, tasks: Labels, study: Mapping) -> list[str]:
    return phrases.absent_tasks(study["tasks"], found["tasks"][0].split(), tasks)
