"""A study's averages, for figures."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from tracecal.tables.settings import Entry, Labels, Settings, present_tasks
from tracecal.tables.words import listed


class Average(NamedTuple):
    """A mean over splits, null where undefined; those of single splits; and answers in a split."""

    mean: float | None
    values: Sequence[float | None]
    n: float | None


ModelAverages = Mapping[tuple[str, str, str], Average]
MISSING = Average(None, (), None)


def select(
    averages: pl.DataFrame, entries: Sequence[Entry], study: str, members: Mapping
) -> pl.DataFrame:
    """The means over the tasks of each model of a study; `InputError` where there are none."""
    return _chosen(averages, entries, study, members).filter(study=study).drop_nulls("model")


def over_tasks(selected: pl.DataFrame) -> ModelAverages:
    """The averages that `select` returns, by model, estimator and metric."""
    rows = selected.select("model", "estimator", "metric", "mean", "values", "n").iter_rows()
    return {
        (model, estimator, metric): Average(*average) for model, estimator, metric, *average in rows
    }


def basis(
    averages: pl.DataFrame,
    entries: Sequence[Entry],
    study: str,
    members: Mapping,
    tasks: Labels,
    width: int = 30,
) -> str:
    """What a study's averages are made from: its tasks with results, and answers in a split."""
    chosen = _chosen(averages, entries, study, members)
    n = chosen.filter(study=study).drop_nulls("model")["n"].max()
    names = listed([tasks[task] for task in present_tasks(chosen)])
    return textwrap.fill(f"mean over {names}; n = {n or 0:.0f} held-out answers", width)


def _chosen(
    averages: pl.DataFrame, entries: Sequence[Entry], study: str, members: Mapping
) -> pl.DataFrame:
    return Settings(entries, studies={study: members}).select(averages, study)
