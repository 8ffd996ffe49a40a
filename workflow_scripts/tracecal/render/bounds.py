"""Intervals of TRACE+'s improvements, as tables look them up and speak of them."""

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

UNSUPPORTED = "§"
COLUMNS = ("study", "model", "task", "metric", "low", "high", "level", "resamples")


class Bounds(NamedTuple):
    """Where an interval begins and ends; null where it is undefined."""

    low: float | None = None
    high: float | None = None


# By study (null: a pair), model (null: over models), task (null: over tasks) and metric.
Intervals = Mapping[tuple[str | None, str | None, str | None, str], Bounds]


def read_bounds(intervals: pl.DataFrame) -> Intervals:
    """The bounds by study, model, task and metric."""
    columns = intervals.select("study", "model", "task", "metric", "low", "high")
    return {tuple(key): Bounds(low, high) for *key, low, high in columns.iter_rows()}


def level(intervals: pl.DataFrame) -> str:
    """The level of the intervals, as "95%"."""
    return f"{100 * intervals['level'].max():g}%"


def explained(intervals: pl.DataFrame, marked: bool) -> list[str]:
    """What the intervals are and, where it is used, what the mark says."""
    notes = [
        f"Intervals ({level(intervals)}): percentiles over {intervals['resamples'].max()} "
        "resamples of whole groups of examples, the same for all estimators. The best baseline is "
        "chosen anew in every resample, which leans against TRACE+; each answer has its mean "
        "probability over the splits, which leans towards estimators with several weights to fit. "
        "Each interval stands by itself, uncorrected for their number."
    ]
    unsupported = (
        f"{UNSUPPORTED} TRACE+ is better, but the interval does not lie above zero: this win is "
        "not supported."
    )
    return notes + [unsupported] * marked
