"""How far TRACE moves when one of its hyperparameters does."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from tracecal.operate.sensitivity import DEFAULT, DEFAULTS
from tracecal.render import phrases
from tracecal.render.averages import BETTER, NAMES
from tracecal.render.table import Cell, Column, Row, RowGroup, Table, cell, number, ranks

METRICS = ("brier", "auroc")
DECIMALS = 3
# A hyperparameter's id among the published numbers, and its sign.
SYMBOLS = {
    "alpha": ("alpha", "α"),
    "beta": ("beta", "β"),
    "gamma": ("gamma", "γ"),
    "decay": ("lambda", "λ"),
    "window": ("w", "w"),
    "exponent": ("rho", "ρ"),
}


class Tried(NamedTuple):
    """A level of a hyperparameter, and the average of one metric there; undefined where null."""

    level: float
    mean: float | None
    sd: float | None


def hyperparameter_table(
    analysis: pl.DataFrame, models: Mapping[str, str], tasks: Mapping[str, str], main: Mapping
) -> Table:
    """The table from the analysis of the same name; `main` names the model and the tasks."""
    present = analysis["task"].drop_nulls().unique().sort().to_list()
    averages = analysis.filter(pl.col("task").is_null(), pl.col("metric").is_in(METRICS))
    default = {one["metric"]: one for one in averages.filter(setting=DEFAULT).to_dicts()}
    scope = (cell(main["model"]), cell(" ".join(present)))

    def row(setting: str) -> Row:
        tried = {metric: _tried(averages, setting, metric) for metric in METRICS}
        name, symbol = SYMBOLS[setting]
        levels = _listed([one.level for one in tried["brier"]])
        shown = [c for metric in METRICS for c in _range(tried[metric], metric)]
        hidden = [cell(sd) for metric in METRICS for sd in _spreads(tried[metric])]
        hidden += [cell(default[metric][key]) for metric in METRICS for key in ("mean", "sd")]
        default_level = cell(f"{DEFAULTS[setting]:g}")
        return (cell(name), cell(symbol), cell(levels), default_level, *shown, *hidden, *scope)

    return Table(
        name="hyperparameter_sensitivity",
        title="Hyperparameter sensitivity",
        caption=_caption(averages, models[main["model"]], [tasks[task] for task in present]),
        columns=_columns(),
        groups=(RowGroup(tuple(map(row, SYMBOLS))),),
        notes=(
            *phrases.absent_tasks(main["tasks"], present, tasks),
            *_left_out(analysis, present, tasks),
            _spread_note(averages),
        ),
        wide=False,
    )


def _columns() -> tuple[Column, ...]:
    def measured(metric: str) -> list[Column]:
        name, ends = NAMES[metric], (f"{metric}_low", f"{metric}_high")
        return [
            Column(ends, "Range", name, better=BETTER[metric], decimals=DECIMALS, joint="–"),
            Column((f"{metric}_best_at",), "Best at", name),
        ]

    return (
        Column(("parameter",), shown=False),
        Column(("label",), "Param.", align="left"),
        Column(("values",), "Values tested"),
        Column(("default",), "Default"),
        *(column for metric in METRICS for column in measured(metric)),
        *(Column((f"{m}_{end}_sd",), shown=False) for m in METRICS for end in ("low", "high")),
        *(Column((f"{m}_default{sd}",), shown=False) for m in METRICS for sd in ("", "_sd")),
        Column(("model",), shown=False),
        Column(("tasks",), shown=False),
    )


def _tried(averages: pl.DataFrame, setting: str, metric: str) -> list[Tried]:
    """By mean, then level."""
    rows = averages.filter(setting=setting, metric=metric).sort("mean", "level")
    return [Tried(*values) for values in rows.select("level", "mean", "sd").iter_rows()]


def _range(tried: Sequence[Tried], metric: str) -> Iterator[Cell]:
    """The lowest and highest mean, and the levels whose means print as the best one does."""
    means = [one.mean for one in tried]
    found = ranks(means, BETTER[metric], DECIMALS)
    best = [one.level for one, rank in zip(tried, found, strict=True) if rank == "best"]
    undefined = means[0] is None
    yield cell(means[0], means[-1])
    yield cell(None if undefined else _listed(best) if best else "all")


def _spreads(tried: Sequence[Tried]) -> tuple[float | None, float | None]:
    """The s.d. over splits at either end of the range."""
    return tried[0].sd, tried[-1].sd


def _listed(levels: Sequence[float]) -> str:
    return ", ".join(f"{level:g}" for level in sorted(levels))


def _caption(averages: pl.DataFrame, model: str, tasks: Sequence[str]) -> str:
    splits = averages["repetitions"].max()
    here = [f"{NAMES[metric]} {_at_default(averages, metric)}" for metric in METRICS]
    return (
        f"TRACE on {model} with one hyperparameter at a time set to other values. What a mixture "
        "weight (α, β, γ) gains or loses is taken from or given to the other two in their "
        "ratio. Every setting is calibrated and measured as TRACE itself is; a mean is that "
        f"over {phrases.count(splits, 'random calibration/evaluation split')}, then over "
        f"{phrases.listed(tasks)}. Range: the lowest and the highest mean among the values "
        "tested. Best at: the values whose mean is the best as printed; all where none differ. "
        f"At the default of every parameter: {phrases.listed(here)}."
    )


def _at_default(averages: pl.DataFrame, metric: str) -> str:
    return number(averages.filter(setting=DEFAULT, metric=metric)["mean"].item(), DECIMALS)


def _spread_note(averages: pl.DataFrame) -> str:
    largest = [
        f"{number(averages.filter(metric=metric)['sd'].max(), DECIMALS)} for {NAMES[metric]}"
        for metric in METRICS
    ]
    return (
        f"The s.d. of a mean over splits is at most {phrases.listed(largest)}; all settings share "
        "the same splits. The best value was chosen on the answers it is measured on."
    )


def _left_out(
    analysis: pl.DataFrame, present: Sequence[str], tasks: Mapping[str, str]
) -> list[str]:
    """A note on the tasks without an AUROC, which the means do not count."""
    at_default = analysis.filter(setting=DEFAULT, metric="auroc").drop_nulls("task")
    undefined = at_default.filter(pl.col("mean").is_null())["task"].to_list()
    names = [tasks[task] for task in present if task in undefined]
    return [f"AUROC is undefined on {phrases.listed(names)} and left out there."] if names else []
