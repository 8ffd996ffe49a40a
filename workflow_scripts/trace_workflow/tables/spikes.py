"""Tables on local spikes of uncertainty: how often answers with one are wrong.

`spike_strata` has the error rates by mean risk and spike gap, in the paper's order of strata, and
`spike_modeling` how well mean risk, the largest token risk and spikes predict correctness.
"""

import polars as pl

from trace_workflow.tables.marks import LEFT_OUT, mark_partly_undefined
from trace_workflow.tables.metric_names import BETTER, METRIC_NAMES, RISK_NOTE
from trace_workflow.tables.ranking_table import BEST_OF_COLUMN, rank_columns
from trace_workflow.tables.standing_notes import refer_to_counts
from trace_workflow.tables.study_results import StudyResults, frame_of, rows_by, summary_columns
from trace_workflow.tables.table import Column, Table

NUMBERS = {
    "n": "n",
    "mean_risk": "Mean risk",
    "spike_gap": "Spike gap",
    "incorrect_rate": "Incorr. rate",
}
ENDS = ("incorrect_rate_low", "incorrect_rate_high")
INTERVAL_NOTE = (
    "Interval of the incorrect rate: bootstrap over groups of answers, the strata held fixed."
)
DETAILS = ("incorrect", *ENDS, "model", "tasks")
METRICS = ("auroc", "brier")
FEATURE_SETS = {
    "mean_risk": "Mean risk",
    "max_token_risk": "Max token risk",
    "spike_gap": "Spike gap",
    "mean_risk_and_spike_gap": "Mean risk + spike gap",
    "trace_local": "TRACE local features",
}


def spike_strata(study: StudyResults) -> Table:
    """From the analysis of the same name: a row per stratum."""
    strata = study.frames["spike_strata"]
    has_empty = strata["n"].min() == 0 < strata["n"].sum()
    return Table(
        frame=strata.select(
            *("risk_stratum", "spike_stratum"),
            risk=pl.col("risk_stratum").str.to_titlecase(),
            spike=pl.col("spike_stratum").str.to_titlecase(),
            **{name: pl.col(name) for name in (*NUMBERS, *DETAILS)},
        ),
        columns=(
            Column(("risk",), "Mean risk", align="left"),
            Column(("spike",), "Spike gap", align="left"),
            *(Column((name,), label, align="right") for name, label in NUMBERS.items()),
            Column(ENDS, f"{100 * strata['level'][0]:g} % interval", joint=" to ", added=True),
        ),
        footnotes=(
            *study.missing_tasks("main", strata["tasks"][0].split()),
            *(["– No answer: half of the tercile or more has a gap of 0."] if has_empty else []),
        ),
        notes=(RISK_NOTE, INTERVAL_NOTE, *refer_to_counts(study)),
    )


def spike_modeling(study: StudyResults) -> Table:
    """From `spike_modeling_averages`: a row per set of features, mean ± s.d. over splits."""
    averages = study.frames["spike_modeling_averages"]
    means = rows_by(averages, "features", "metric")
    model, tasks = averages.select("model", "tasks").row(0)
    rows = []
    for features in sorted({features for features, _ in means}, key=list(FEATURE_SETS).index):
        row = {"features": features, "label": FEATURE_SETS[features]}
        for metric in METRICS:
            row |= summary_columns({metric: means[features, metric]})
        rows.append(row | {"n": means[features, "brier"]["n"], "model": model, "tasks": tasks})
    columns = [
        Column(
            (metric, f"{metric}_sd"),
            METRIC_NAMES[metric],
            better=BETTER[metric],
            joint=" ± ",
            mark=mark_partly_undefined(metric),
        )
        for metric in METRICS
    ]
    undefined = averages["undefined"].max() > 0
    return Table(
        frame=frame_of(rows),
        columns=(Column(("label",), "Feature set", align="left"), *rank_columns(columns)),
        emphasis=BEST_OF_COLUMN,
        footnotes=(*study.missing_tasks("main", tasks.split()), *([f"{LEFT_OUT}."] * undefined)),
        notes=(RISK_NOTE, *refer_to_counts(study, pooled=True)),
    )
