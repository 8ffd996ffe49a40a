"""A study's averages as figures plot them: means over the tasks of each model."""

import textwrap
from collections.abc import Mapping, Sequence

import polars as pl

from trace_workflow.tables.study_results import Labels, select_study, tasks_of
from trace_workflow.tables.wording import join_names
from tracecal.estimators.estimator import Entry

Means = Mapping[tuple[str, str, str], float | None]  # by model, estimator and metric


def select_models(
    averages: pl.DataFrame, entries: Sequence[Entry], study: str, members: Mapping
) -> pl.DataFrame:
    """The means over the tasks of each model of a study; `InputError` where there are none."""
    rows = select_study(averages, entries, study, members)
    return rows.filter(study=study).drop_nulls("model")


def means_of(rows: pl.DataFrame) -> Means:
    """The means in rows of `select_models`, None where undefined."""
    columns = rows.select("model", "estimator", "metric", "mean")
    return {tuple(key): mean for *key, mean in columns.iter_rows()}


def describe_averages(
    averages: pl.DataFrame,
    entries: Sequence[Entry],
    study: str,
    members: Mapping,
    tasks: Labels,
    width: int = 26,
) -> str:
    """What a study's averages are made from: its tasks with results, and answers in a split."""
    rows = select_study(averages, entries, study, members)
    n = rows.filter(study=study).drop_nulls("model")["n"].max()
    names = join_names([tasks[task] for task in tasks_of(rows)])
    return textwrap.fill(f"mean over {names}; n = {n or 0:.0f} held-out answers", width)
