"""The sensitivity of metrics to each hyperparameter of TRACE."""

from collections.abc import Mapping

import polars as pl

from trace_workflow.analyses.operator_variants import DEFAULT, DEFAULTS
from trace_workflow.tables.marks import explain_partly_undefined
from trace_workflow.tables.metric_names import BETTER, METRIC_NAMES, METRICS
from trace_workflow.tables.standing_notes import count_notes
from trace_workflow.tables.study_results import StudyResults, frame_of, rows_by, tasks_of
from trace_workflow.tables.table import Column, Table, format_number
from trace_workflow.tables.wording import join_names

DECIMALS = 3
# A hyperparameter's id among the published numbers, and its symbol.
SYMBOLS = {
    "alpha": ("alpha", "α"),
    "beta": ("beta", "β"),
    "gamma": ("gamma", "γ"),
    "decay": ("lambda", "λ"),
    "window": ("w", "w"),
    "exponent": ("rho", "ρ"),
}


def table(study: StudyResults) -> Table:
    """From the analysis of the same name: a row per hyperparameter."""
    analysis = study.frames["hyperparameter_sensitivity"]
    tasks = tasks_of(analysis)
    averages = analysis.filter(pl.col("task").is_null(), pl.col("metric").is_in(METRICS))
    at_default = analysis.filter(setting=DEFAULT).with_columns(splits="repetitions")
    default = rows_by(averages.filter(setting=DEFAULT), "metric")
    means = [
        f"{METRIC_NAMES[metric]} {format_number(default[metric,]['mean'], DECIMALS)}"
        for metric in METRICS
    ]
    settings = set(averages["setting"])
    rows = [_row(setting, averages, default) for setting in SYMBOLS if setting in settings]
    return Table(
        frame=frame_of(rows).with_columns(**study.scope(tasks)),
        columns=(
            Column(("label",), "Param.", align="left"),
            Column(("values",), "Values tested"),
            *(
                Column(
                    (f"{metric}_low", f"{metric}_high"),
                    METRIC_NAMES[metric],
                    better=BETTER[metric],
                    decimals=DECIMALS,
                    joint="–",
                )
                for metric in METRICS
            ),
            Column(("default",), "Default", decimals=2, added=True),
        ),
        footnotes=(
            *study.missing_tasks("main", tasks),
            *explain_partly_undefined({"": at_default}, study.tasks),
        ),
        notes=(
            f"At the default of every parameter: {join_names(means)}.",
            _explain_spread(averages),
            *count_notes(study),
        ),
    )


def _row(setting: str, averages: pl.DataFrame, default: Mapping[tuple, Mapping]) -> dict:
    levels = {
        metric: averages.filter(setting=setting, metric=metric).sort("mean", "level").to_dicts()
        for metric in METRICS
    }
    name, symbol = SYMBOLS[setting]
    values = ", ".join(f"{level:g}" for level in sorted(row["level"] for row in levels["brier"]))
    row = {"parameter": name, "label": symbol, "values": values}
    row |= {"default": float(DEFAULTS[setting])}
    for metric, (low, *_, high) in levels.items():
        row |= {f"{metric}_low": low["mean"], f"{metric}_high": high["mean"]}
    for metric, (low, *_, high) in levels.items():
        row |= {f"{metric}_low_sd": low["sd"], f"{metric}_high_sd": high["sd"]}
    for metric in METRICS:
        average = default[metric,]
        row |= {f"{metric}_default": average["mean"], f"{metric}_default_sd": average["sd"]}
    return row


def _explain_spread(averages: pl.DataFrame) -> str:
    largest = [
        f"{format_number(averages.filter(metric=metric)['sd'].max(), DECIMALS)} for "
        f"{METRIC_NAMES[metric]}"
        for metric in METRICS
    ]
    return (
        f"The s.d. of a mean over splits is at most {join_names(largest)}; all settings share the "
        "same splits."
    )
