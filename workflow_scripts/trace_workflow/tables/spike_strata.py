"""Error rates by mean risk and spike gap, in the paper's order of strata."""

import polars as pl

from trace_workflow.tables.metric_names import RISK_NOTE
from trace_workflow.tables.standing_notes import refer_to_counts
from trace_workflow.tables.study_results import StudyResults
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


def table(study: StudyResults) -> Table:
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
            Column(ENDS, f"{100 * strata['level'][0]:g}% interval", joint=" to ", added=True),
        ),
        footnotes=(
            *study.missing_tasks("main", strata["tasks"][0].split()),
            *(["– No answer: half of the tercile or more has a gap of 0."] if has_empty else []),
        ),
        notes=(RISK_NOTE, INTERVAL_NOTE, *refer_to_counts(study)),
    )
