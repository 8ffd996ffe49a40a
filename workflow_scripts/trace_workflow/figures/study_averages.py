"""A study's averages as figures plot them: means over the tasks of each model."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from trace_workflow.tables.study_results import Labels, select_study, tasks_of
from trace_workflow.tables.wording import join_names
from tracecal.estimators.estimator import Entry


class Average(NamedTuple):
    """A mean over splits, None where undefined; those of single splits; and answers in a split."""

    mean: float | None
    values: Sequence[float | None]
    n: float | None


Averages = Mapping[tuple[str, str, str], Average]  # by model, estimator and metric
MISSING = Average(None, (), None)


def select_models(
    averages: pl.DataFrame, entries: Sequence[Entry], study: str, members: Mapping
) -> pl.DataFrame:
    """The means over the tasks of each model of a study; `InputError` where there are none."""
    rows = select_study(averages, entries, study, members)
    return rows.filter(study=study).drop_nulls("model")


def by_model(rows: pl.DataFrame) -> Averages:
    """The rows of `select_models` by model, estimator and metric."""
    columns = rows.select("model", "estimator", "metric", "mean", "values", "n")
    return {
        (model, estimator, metric): Average(*average)
        for model, estimator, metric, *average in columns.iter_rows()
    }


def describe_averages(
    averages: pl.DataFrame,
    entries: Sequence[Entry],
    study: str,
    members: Mapping,
    tasks: Labels,
    width: int = 30,
) -> str:
    """What a study's averages are made from: its tasks with results, and answers in a split."""
    rows = select_study(averages, entries, study, members)
    n = rows.filter(study=study).drop_nulls("model")["n"].max()
    names = join_names([tasks[task] for task in tasks_of(rows)])
    return textwrap.fill(f"mean over {names}; n = {n or 0:.0f} held-out answers", width)
