"""Wording that tables and figures share."""

from collections.abc import Mapping, Sequence

import polars as pl

ALIKE = "values that print alike share the mark"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Sequence[str]) -> str:
    """ "A", "A and B", "A, B and C"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def over_splits(selected: pl.DataFrame) -> str:
    splits = selected["split"].n_unique()
    return f"the mean over {count(splits, 'random calibration/evaluation split')}"


def absent_tasks(
    wanted: Sequence[str], present: Sequence[str], tasks: Mapping[str, str]
) -> list[str]:
    """A note on the tasks of a study that have no results yet, where there are any."""
    absent = [tasks[task] for task in sorted(set(wanted) - set(present))]
    return [f"No results yet on {listed(absent)}."] if absent else []


def undefined(selected: pl.DataFrame, metric: str, tasks: Mapping[str, str]) -> list[str]:
    """The tasks on which `metric` is undefined in some splits, with how many at the worst."""
    counts = (
        selected.filter(metric=metric)
        .group_by("task", "estimator")
        .agg(undefined=pl.col("value").null_count(), splits=pl.len())
        .group_by("task")
        .agg(pl.col("undefined").max(), pl.col("splits").max())
        .filter(pl.col("undefined") > 0)
        .sort("task")
    )
    return [f"{tasks[task]} ({n} of {splits} splits)" for task, n, splits in counts.iter_rows()]
