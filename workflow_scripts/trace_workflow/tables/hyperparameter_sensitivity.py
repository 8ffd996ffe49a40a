"""The sensitivity of metrics to each hyperparameter of TRACE and to the penalty of TRACE+."""

import math
from collections.abc import Mapping, Sequence

import polars as pl

from trace_workflow.analyses.hyperparameter_sensitivity import PENALTY
from trace_workflow.analyses.operator_variants import DEFAULT, DEFAULTS
from trace_workflow.tables.metric_names import BETTER, METRIC_NAMES, METRICS
from trace_workflow.tables.ranking import rank_values
from trace_workflow.tables.standing_notes import count_notes
from trace_workflow.tables.study_results import StudyResults, frame_of, rows_by, tasks_of
from trace_workflow.tables.table import Column, Table, format_number
from trace_workflow.tables.wording import join_names

DECIMALS = 3
BEST_AT_NOTE = "Best at: the values whose mean is the best as printed."
# A hyperparameter's id among the published numbers, and its symbol.
SYMBOLS = {
    "alpha": ("alpha", "α"),
    "beta": ("beta", "β"),
    "gamma": ("gamma", "γ"),
    "decay": ("lambda", "λ"),
    "window": ("w", "w"),
    "exponent": ("rho", "ρ"),
    PENALTY: ("C", "C (TRACE+)"),
}
DEFAULT_VALUES = DEFAULTS | {PENALTY: 1.0}


def table(study: StudyResults) -> Table:
    """From the analysis of the same name: a row per hyperparameter."""
    analysis = study.frames["hyperparameter_sensitivity"]
    tasks = tasks_of(analysis)
    averages = analysis.filter(pl.col("task").is_null(), pl.col("metric").is_in(METRICS))
    default = rows_by(averages.filter(setting=DEFAULT), "metric")
    at_default = [
        f"{METRIC_NAMES[metric]} {format_number(default[metric,]['mean'], DECIMALS)}"
        for metric in METRICS
    ]
    settings = set(averages["setting"])
    rows = [_row(setting, averages) for setting in SYMBOLS if setting in settings]
    has_best = any(row[f"{metric}_best_at"] for row in rows for metric in METRICS)
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
            *(
                Column((f"{metric}_best_at",), METRIC_NAMES[metric], "Best at", added=True)
                for metric in METRICS
            ),
        ),
        added=pl.col("parameter") == SYMBOLS[PENALTY][0],
        footnotes=(
            *study.missing_tasks("main", tasks),
            *_explain_undefined(analysis, tasks, study),
        ),
        notes=(
            *([BEST_AT_NOTE] if has_best else []),
            f"At the default of every parameter: {join_names(at_default)}.",
            _explain_spread(averages),
            *count_notes(study),
        ),
    )


def _row(setting: str, averages: pl.DataFrame) -> dict:
    levels = {
        metric: averages.filter(setting=setting, metric=metric).sort("mean", "level").to_dicts()
        for metric in METRICS
    }
    name, symbol = SYMBOLS[setting]
    default_value = float(DEFAULT_VALUES[setting])
    at_default = (
        averages.filter(setting=setting, level=default_value)
        if setting == PENALTY
        else averages.filter(setting=DEFAULT)
    )
    default = rows_by(at_default, "metric")
    row = {"parameter": name, "label": symbol, "values": _join_levels(levels["brier"])}
    row |= {"default": default_value}
    for metric, (low, *_, high) in levels.items():
        row |= {f"{metric}_low": low["mean"], f"{metric}_high": high["mean"]}
        row |= {f"{metric}_best_at": _best_levels(levels[metric], metric)}
    for metric, (low, *_, high) in levels.items():
        row |= {f"{metric}_low_sd": low["sd"], f"{metric}_high_sd": high["sd"]}
    for metric in METRICS:
        average = default[metric,]
        row |= {f"{metric}_default": average["mean"], f"{metric}_default_sd": average["sd"]}
    return row


def _best_levels(averages: Sequence[Mapping], metric: str) -> str | None:
    """The levels whose means print like the best; None where a mean is undefined."""
    means = [average["mean"] for average in averages]
    if None in means:
        return None
    ranks = rank_values(means, BETTER[metric], DECIMALS)
    best = [average for average, rank in zip(averages, ranks, strict=True) if rank == "best"]
    return _join_levels(best or averages)


def _join_levels(averages: Sequence[Mapping]) -> str:
    levels = sorted(average["level"] for average in averages)
    return ", ".join("none" if math.isinf(level) else f"{level:g}" for level in levels)


def _explain_spread(averages: pl.DataFrame) -> str:
    largest = [
        f"{format_number(averages.filter(metric=metric)['sd'].max(), DECIMALS)} for "
        f"{METRIC_NAMES[metric]}"
        for metric in METRICS
    ]
    return (
        f"The s.d. of a mean over splits is at most {join_names(largest)}; all settings share the "
        "same splits. The best value is chosen on the answers that measure it."
    )


def _explain_undefined(
    analysis: pl.DataFrame, tasks: Sequence[str], study: StudyResults
) -> list[str]:
    """A note on the tasks without an AUROC, which the means leave out."""
    at_default = analysis.filter(setting=DEFAULT, metric="auroc").drop_nulls("task")
    undefined = at_default.filter(pl.col("mean").is_null())["task"].to_list()
    names = [study.tasks[task] for task in tasks if task in undefined]
    return [f"AUROC is undefined on {join_names(names)} and left out there."] if names else []
