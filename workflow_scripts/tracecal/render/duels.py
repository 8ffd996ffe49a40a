"""TRACE+ against the best baseline, an oracle, by one metric over one or several tasks."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

import polars as pl

from tracecal.render import averages
from tracecal.render.averages import BETTER, NAMES, Entry, Series
from tracecal.render.bounds import UNSUPPORTED, Bounds
from tracecal.render.table import Cell, Column, cell, ranks

METRICS = ("brier", "auroc")
BEST, TRACE_PLUS, IMPROVEMENT = "best_baseline", "trace_plus", "improvement"
DECIMALS = 3


class Duel(NamedTuple):
    """TRACE+ against the best baseline by `metric`; undefined where either is.

    `splits` holds both sides split by split, `bounds` the interval of the improvement.
    """

    metric: str
    winner: str | None
    reference: float | None
    value: float | None
    splits: tuple[Series, Series]
    bounds: Bounds

    @property
    def gain(self) -> float | None:
        """By how much TRACE+ is better: positive when it is."""
        return averages.gain(self.reference, self.value, self.metric)

    @property
    def won(self) -> bool:
        return self.gain is not None and self.gain > 0

    @property
    def supported(self) -> bool:
        """Whether TRACE+ wins and the interval lies above zero."""
        return self.won and self.bounds.low is not None and self.bounds.low > 0

    @property
    def unsupported(self) -> bool:
        """Whether TRACE+ wins and the interval does not lie above zero."""
        return self.won and not self.supported

    @property
    def sds(self) -> list[float | None]:
        """The s.d. over splits of the best baseline, of TRACE+ and of the improvement."""
        reference, value = self.splits
        gains = [averages.gain(x, value.get(s), self.metric) for s, x in reference.items()]
        return [averages.spread(values) for values in (reference.values(), value.values(), gains)]


def duel(
    selected: pl.DataFrame, model: str, baselines: Sequence[Entry], metric: str, bounds: Bounds
) -> Duel:
    """The duel on `model`'s averages over the tasks in `selected`."""
    of_model = selected.filter(model=model)
    overall, by_split = averages.over_tasks(of_model), averages.split_means(of_model)

    def average(estimator: str) -> float | None:
        return overall.get((model, estimator, metric), averages.MISSING).mean

    values = {entry.id: average(entry.id) for entry in baselines}
    winner = averages.best(values, metric)
    sides = tuple(by_split.get((model, one, metric), {}) for one in (winner, TRACE_PLUS))
    return Duel(metric, winner, values.get(winner), average(TRACE_PLUS), sides, bounds)


def mean_duel(duels: Sequence[Duel], metric: str, bounds: Bounds) -> Duel:
    """The mean of several duels by the same metric, those that are defined."""
    both = [duel for duel in duels if duel.gain is not None]
    return Duel(
        metric,
        winner=None,
        reference=fmean(duel.reference for duel in both) if both else None,
        value=fmean(duel.value for duel in both) if both else None,
        splits=tuple(_mean_series([duel.splits[side] for duel in both]) for side in (0, 1)),
        bounds=bounds,
    )


def _mean_series(members: Sequence[Series]) -> Series:
    """The mean of several series where all of them have a value."""
    splits = sorted(set().union(*members))
    values = {split: [series.get(split) for series in members] for split in splits}
    return {split: None if None in each else fmean(each) for split, each in values.items()}


def side_cells(duel: Duel) -> list[Cell]:
    """The best baseline and TRACE+, the better one as printed marked."""
    values = (duel.reference, duel.value)
    found = ranks(values, BETTER[duel.metric], DECIMALS)
    return [
        replace(cell(value), emphasis="best" if emphasis == "best" else None)
        for value, emphasis in zip(values, found, strict=True)
    ]


def gain_cell(duel: Duel) -> Cell:
    """The improvement, marked where it is a win that the interval does not support."""
    return cell(duel.gain, mark=UNSUPPORTED * duel.unsupported)


def value_column(side: str, metric: str, label: str, group: str) -> Column:
    return Column((f"{metric}_{side}",), label, group, better=BETTER[metric], decimals=DECIMALS)


def gain_column(metric: str, label: str, group: str) -> Column:
    key = f"{metric}_{IMPROVEMENT}"
    return Column((key,), label, group, better="higher", decimals=DECIMALS, signed=True)


def hidden_columns(metric: str) -> list[Column]:
    """What the CSV holds beside the printed values of a duel."""
    sides = (BEST, TRACE_PLUS, IMPROVEMENT)
    names = [f"{BEST}_id", *(f"{side}_sd" for side in sides)]
    names += [f"{IMPROVEMENT}_{bound}" for bound in Bounds._fields]
    return [Column((f"{metric}_{name}",), shown=False) for name in names]


def hidden_cells(duel: Duel) -> list[Cell]:
    return [cell(value) for value in (duel.winner, *duel.sds, *duel.bounds)]


def nothing_to_compare(selected: pl.DataFrame) -> list[str]:
    """A note where one side is not among the run's estimators."""
    estimators = set(selected["estimator"])
    if TRACE_PLUS not in estimators:
        return ["TRACE+ is not among the estimators of this run, so there is nothing to compare."]
    if estimators == {TRACE_PLUS}:
        return ["No baseline is among the estimators of this run, so there is nothing to compare."]
    return []


def partly_undefined(
    by_task: averages.TaskAverages, models: dict[str, str], tasks: dict[str, str]
) -> list[str]:
    """A note for each metric that is undefined in some splits of some task."""
    notes = []
    for metric in METRICS:
        undefined: dict[tuple[str, str], tuple[int, int]] = {}
        for (model, task, _, name), average in by_task.items():
            if name == metric and average.undefined:
                worst = undefined.get((model, task), (0, 0))
                undefined[model, task] = max(worst, (average.undefined, average.splits))
        parts = [
            f"{models[model]} on {tasks[task]} ({count} of {splits} splits)"
            for (model, task), (count, splits) in sorted(undefined.items())
        ]
        if parts:
            notes.append(
                f"{NAMES[metric]} undefined and left out of the means: {'; '.join(parts)}."
            )
    return notes
