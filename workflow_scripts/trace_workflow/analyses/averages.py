"""Means over splits, then over tasks, then over models, comparable between estimators.

A task counts for a metric where any estimator has a value on it. An estimator that lacks a value on
one of these tasks has no average. The standard deviation of an average over tasks or models is
taken over the averages of single splits, which the frame keeps as `values`.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

import polars as pl

from trace_workflow.analyses.study_files import StudyFiles, in_study
from tracecal.io.files import read_parquet
from tracecal.statistics.metrics import METRICS

SUMMARY = {
    "mean": pl.Float64,
    "sd": pl.Float64,
    "splits": pl.Int64,
    "undefined": pl.Int64,
    "n": pl.Float64,
    "values": pl.List(pl.Float64),
}
KEYS = ("study", "model", "task", "estimator", "metric")
AVERAGES = {name: pl.String for name in KEYS} | SUMMARY


def analysis(
    files: StudyFiles, studies: Mapping[str, Mapping], by: Sequence[str] = ()
) -> pl.DataFrame:
    """Average the metrics of the file `measured` (see `averages`)."""
    return averages(read_parquet(files["measured"], [*by, *METRICS]), studies, by)


def average_pooled(files: StudyFiles, what: str) -> pl.DataFrame:
    """Average metrics of the pooled answers of several tasks, from the file `measured`.

    `what` is its column that tells the rows apart: 'estimator' or 'features'.
    """
    keys = ["model", "tasks", what, "metric"]
    return average_over_splits(read_parquet(files["measured"], needed=keys), keys)


def averages(
    metrics: pl.DataFrame, studies: Mapping[str, Mapping], by: Sequence[str] = ()
) -> pl.DataFrame:
    """Average `metrics` (columns METRICS) over splits, tasks and models, separately for each `by`.

    Rows of a (model, task) pair have no `study`. Rows of a study ('main', 'cross') have no `task`
    and are means over its tasks, some of which may have no rows yet; rows of 'cross' without a
    `model` are means over its models. The columns are `by`, KEYS and SUMMARY: `mean` and `sd` over
    the number of `splits`; how many splits are `undefined` and left out of the mean; the number
    `n` of answers in a split, summed over tasks; and `values`, one per split. None means
    undefined.
    """
    pairs = average_over_splits(metrics, [*by, "model", "task", "estimator", "metric"])
    frames = [pairs.with_columns(study=pl.lit(None, pl.String))]
    keys = [*by, "model", "estimator", "metric"]
    missing = pl.lit(None, pl.String)
    for study, members in studies.items():
        means = average_over_tasks(pairs.filter(in_study(members)), keys, compared=["estimator"])
        frames.append(means.with_columns(study=pl.lit(study), task=missing))
        if "models" in members:
            without_model = [key for key in keys if key != "model"]
            models = means.select("model").unique()
            expected = means.select(without_model).unique().join(models, how="cross")
            of_models = expected.join(means, on=keys, how="left", nulls_equal=True)
            overall = average_members(of_models.sort("model"), without_model)
            frames.append(overall.with_columns(study=pl.lit(study), model=missing, task=missing))
    order = [*by, *KEYS, *SUMMARY]
    return pl.concat(frame.select(order) for frame in frames).sort(*by, *KEYS)


def average_over_splits(
    metrics: pl.DataFrame, keys: Sequence[str], over: str = "split"
) -> pl.DataFrame:
    """`keys` and SUMMARY of the `value` of rows with the same keys, in the order of `over`."""
    size = pl.col("n").mean() if "n" in metrics.columns else pl.lit(None, pl.Float64)
    groups = (
        metrics.with_columns(pl.col("value").fill_nan(None))
        .sort(*keys, over)
        .group_by(keys, maintain_order=True)
        .agg(pl.col("value"), n=size)
    )
    series = groups["value"].to_list()
    means = [mean(values) for values in series]
    return _summary(groups.select(keys), means, series, groups["n"].to_list())


def average_over_tasks(
    pairs: pl.DataFrame, keys: Sequence[str], compared: Sequence[str] = ()
) -> pl.DataFrame:
    """Means over the tasks that count, for each combination of `keys`.

    A task counts where a value is defined in any of the rows that differ only in the keys
    `compared`. The mean is undefined where no task counts.
    """
    scope = [key for key in keys if key not in compared]
    has_value = pl.col("mean").is_not_null().any().alias("has_value")
    tasks = pairs.group_by(*scope, "task").agg(has_value)
    without_any = ~pl.col("has_value").any().over(scope)
    counted = tasks.filter(pl.col("has_value") | without_any).drop("has_value")
    expected = pairs.select(keys).unique().join(counted, on=scope, nulls_equal=True)
    members = expected.join(pairs, on=[*keys, "task"], how="left", nulls_equal=True)
    return average_members(members.sort("task"), keys)


def average_members(members: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Means of the SUMMARY rows with the same `keys`, undefined where one of them is."""
    groups = members.group_by(keys).agg("mean", "values", pl.col("n").sum()).sort(keys)
    means = [None if None in values else mean(values) for values in groups["mean"].to_list()]
    series = [mean_series(values) for values in groups["values"].to_list()]
    return _summary(groups.select(keys), means, series, groups["n"].to_list())


def mean_series(members: Sequence[Sequence[float | None] | None]) -> list[float | None]:
    """The mean of several series split by split; None where one of them has no value.

    >>> mean_series([[1.0, 2.0], [3.0, None]])
    [2.0, None]
    """
    defined = [series for series in members if series is not None]
    if len(defined) < len(members):
        return [None] * max(map(len, defined), default=0)
    return [None if None in values else fmean(values) for values in zip(*defined, strict=True)]


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of the defined values, None where there are none."""
    defined = [value for value in values if value is not None]
    return fmean(defined) if defined else None


def spread(values: Sequence[float | None]) -> float | None:
    """The s.d. of the defined values, None where there are fewer than two."""
    defined = [value for value in values if value is not None]
    return stdev(defined) if len(defined) > 1 else None


def average_repetitions(metrics: pl.DataFrame, keys: Sequence[str], over: str) -> pl.DataFrame:
    """Means of `value` over the repetitions `over`, for each task, and over tasks (`task` None).

    Columns `task`, the keys, `mean`, `sd`, `repetitions` and `undefined`, sorted. A task without
    any value does not count in the mean over tasks.
    """
    tasks = average_over_splits(metrics, ["task", *keys], over)
    overall = average_over_tasks(tasks, keys).with_columns(task=pl.lit(None, pl.String))
    return (
        pl.concat([tasks, overall.select(tasks.columns)])
        .rename({"splits": "repetitions"})
        .select("task", *keys, "mean", "sd", "repetitions", "undefined")
        .sort("task", *keys)
    )


def _summary(
    keys: pl.DataFrame,
    means: Sequence[float | None],
    series: Sequence[Sequence[float | None]],
    sizes: Sequence[float | None],
) -> pl.DataFrame:
    columns = {
        "mean": means,
        "sd": [spread(values) for values in series],
        "splits": [len(values) for values in series],
        "undefined": [sum(value is None for value in values) for values in series],
        "n": sizes,
        "values": series,
    }
    return keys.with_columns(pl.DataFrame(columns, schema=SUMMARY).get_columns())
