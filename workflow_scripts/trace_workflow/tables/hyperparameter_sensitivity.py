"""How far metrics change with each hyperparameter of TRACE, and with the penalty of TRACE+."""

import math
from collections.abc import Mapping, Sequence

import polars as pl

from trace_workflow.analyses.hyperparameter_sensitivity import PENALTY
from trace_workflow.analyses.operator_variants import DEFAULT, DEFAULTS
from trace_workflow.tables import notes
from trace_workflow.tables.captions import listed
from trace_workflow.tables.notes import BETTER, METRICS, NAMES, frame_of
from trace_workflow.tables.settings import Frames, Settings, present_tasks
from trace_workflow.tables.table import Column, Table, number, ranks

DECIMALS = 3
LEVELS = "Best at: the values whose mean is the best as printed."
# A hyperparameter's id among the published numbers, and its sign.
SYMBOLS = {
    "alpha": ("alpha", "α"),
    "beta": ("beta", "β"),
    "gamma": ("gamma", "γ"),
    "decay": ("lambda", "λ"),
    "window": ("w", "w"),
    "exponent": ("rho", "ρ"),
    PENALTY: ("C", "C (TRACE+)"),
}
VALUES = DEFAULTS | {PENALTY: 1.0}


def table(frames: Frames, settings: Settings) -> Table:
    """From `hyperparameter_sensitivity`: a row per hyperparameter."""
    analysis = frames["hyperparameter_sensitivity"]
    present = present_tasks(analysis)
    averages = analysis.filter(pl.col("task").is_null(), pl.col("metric").is_in(METRICS))
    default = {row["metric"]: row for row in averages.filter(setting=DEFAULT).to_dicts()}
    at_default = [f"{NAMES[m]} {number(default[m]['mean'], DECIMALS)}" for m in METRICS]
    found = set(averages["setting"])
    rows = [_row(setting, averages, default) for setting in SYMBOLS if setting in found]
    return Table(
        frame=frame_of(rows).with_columns(**settings.scope(present)),
        columns=(
            Column(("label",), "Param.", align="left"),
            Column(("values",), "Values tested"),
            *(
                Column(
                    (f"{metric}_low", f"{metric}_high"),
                    NAMES[metric],
                    better=BETTER[metric],
                    decimals=DECIMALS,
                    joint="–",
                )
                for metric in METRICS
            ),
            Column(("default",), "Default", decimals=2, added=True),
            *(Column((f"{m}_best_at",), NAMES[m], "Best at", added=True) for m in METRICS),
        ),
        added=pl.col("parameter") == SYMBOLS[PENALTY][0],
        footnotes=(
            *settings.absent_tasks("main", present),
            *_left_out(analysis, present, settings),
        ),
        notes=(
            *([LEVELS] if any(row[f"{m}_best_at"] for row in rows for m in METRICS) else []),
            f"At the default of every parameter: {listed(at_default)}.",
            _spread_note(averages),
            *notes.notes(frames, settings),
        ),
    )


def _row(setting: str, averages: pl.DataFrame, default: Mapping[str, Mapping]) -> dict:
    by_metric = {
        metric: averages.filter(setting=setting, metric=metric).sort("mean", "level").to_dicts()
        for metric in METRICS
    }
    name, symbol = SYMBOLS[setting]
    row = {"parameter": name, "label": symbol, "values": _levels(by_metric["brier"])}
    row |= {"default": float(VALUES[setting])}
    if setting == PENALTY:
        at_one = averages.filter(setting=setting, level=VALUES[setting])
        default = {average["metric"]: average for average in at_one.to_dicts()}
    for metric, (low, *_, high) in by_metric.items():
        row |= {f"{metric}_low": low["mean"], f"{metric}_high": high["mean"]}
        row |= {f"{metric}_best_at": _best_at(by_metric[metric], metric)}
    for metric, (low, *_, high) in by_metric.items():
        row |= {f"{metric}_low_sd": low["sd"], f"{metric}_high_sd": high["sd"]}
    for metric in METRICS:
        average = default[metric]
        row |= {f"{metric}_default": average["mean"], f"{metric}_default_sd": average["sd"]}
    return row


def _best_at(averages: Sequence[Mapping], metric: str) -> str | None:
    """The levels whose means print like the best; null where a mean is undefined."""
    means = [average["mean"] for average in averages]
    if None in means:
        return None
    places = ranks(means, BETTER[metric], DECIMALS)
    best = [average for average, rank in zip(averages, places, strict=True) if rank == "best"]
    return _levels(best or averages)


def _levels(averages: Sequence[Mapping]) -> str:
    levels = sorted(average["level"] for average in averages)
    return ", ".join("none" if math.isinf(level) else f"{level:g}" for level in levels)


def _spread_note(averages: pl.DataFrame) -> str:
    largest = [
        f"{number(averages.filter(metric=metric)['sd'].max(), DECIMALS)} for {NAMES[metric]}"
        for metric in METRICS
    ]
    return (
        f"The s.d. of a mean over splits is at most {listed(largest)}; all settings share the same "
        "splits. The best value was chosen on the answers it is measured on."
    )


def _left_out(analysis: pl.DataFrame, present: Sequence[str], settings: Settings) -> list[str]:
    """A note on the tasks without an AUROC, which the means leave out."""
    at_default = analysis.filter(setting=DEFAULT, metric="auroc").drop_nulls("task")
    undefined = at_default.filter(pl.col("mean").is_null())["task"].to_list()
    names = [settings.tasks[task] for task in present if task in undefined]
    return [f"AUROC is undefined on {listed(names)} and left out there."] if names else []
