"""Error rates by mean risk and spike gap, in the paper's order of strata."""

import polars as pl

from trace_workflow.tables import notes
from trace_workflow.tables.notes import RISK
from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import Column, Table

NUMBERS = {
    "n": "n",
    "mean_risk": "Mean risk",
    "spike_gap": "Spike gap",
    "incorrect_rate": "Incorr. rate",
}
ENDS = ("incorrect_rate_low", "incorrect_rate_high")
INTERVAL = (
    "Interval of the incorrect rate: bootstrap over groups of answers, the strata held fixed."
)
MORE = ("incorrect", *ENDS, "model", "tasks")


def table(frames: Frames, settings: Settings) -> Table:
    """From `spike_strata`: a row per stratum."""
    strata = frames["spike_strata"]
    names = ("risk_stratum", "spike_stratum")
    empty = strata["n"].min() == 0 < strata["n"].sum()
    return Table(
        frame=strata.select(
            *names,
            risk=pl.col("risk_stratum").str.to_titlecase(),
            spike=pl.col("spike_stratum").str.to_titlecase(),
            **{name: pl.col(name) for name in (*NUMBERS, *MORE)},
        ),
        columns=(
            Column(("risk",), "Mean risk", align="left"),
            Column(("spike",), "Spike gap", align="left"),
            *(Column((name,), label, align="right") for name, label in NUMBERS.items()),
            Column(ENDS, f"{100 * strata['level'][0]:g}% interval", joint=" to ", added=True),
        ),
        footnotes=(
            *settings.absent_tasks("main", strata["tasks"][0].split()),
            *(["– No answer: half of the tercile or more has a gap of 0."] if empty else []),
        ),
        notes=(RISK, INTERVAL, *notes.elsewhere(frames, settings)),
    )
