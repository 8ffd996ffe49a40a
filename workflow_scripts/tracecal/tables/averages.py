"""A study's averages, for figures."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from tracecal.tables.settings import Entry, Settings


class Average(NamedTuple):
    """A mean and its s.d. over splits; null where undefined."""

    mean: float | None
    sd: float | None


ModelAverages = Mapping[tuple[str, str, str], Average]
MISSING = Average(None, None)


def select(
    averages: pl.DataFrame, entries: Sequence[Entry], study: str, members: Mapping
) -> pl.DataFrame:
    """The means over the tasks of each model of a study; `InputError` where there are none."""
    chosen = Settings(entries, studies={study: members}).select(averages, study)
    return chosen.filter(study=study).drop_nulls("model")


def over_tasks(selected: pl.DataFrame) -> ModelAverages:
    """The averages that `select` returns, by model, estimator and metric."""
    rows = selected.select("model", "estimator", "metric", "mean", "sd").iter_rows()
    return {tuple(key): Average(mean, sd) for *key, mean, sd in rows}
