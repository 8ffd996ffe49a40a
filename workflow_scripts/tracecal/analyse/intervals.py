"""How much better TRACE+ is than the best baseline, with an interval from the paired bootstrap.

"Best" is an oracle: per metric, whichever baseline comes out first. It is chosen anew in every
resample, so that the interval also holds how uncertain the choice is. The largest of several noisy
values lies above the largest of their expectations, in the sample and once more in each resample,
and so this choice leans against TRACE+: an interval below zero proves no loss.

What is measured is not quite the tables' mean over splits: an example counts once, with the mean
of its probabilities. Such a mean errs less than the fits it is made of, the more so the more
weights they have, and this leans towards TRACE+. A win is therefore supported where TRACE+ is
better in the table and the interval lies above zero.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

TRACE_PLUS = "trace_plus"
# What makes larger better.
SIGNS = {"brier": -1.0, "auroc": 1.0}

INTERVALS = {
    "study": pl.String,
    "model": pl.String,
    "task": pl.String,
    "metric": pl.String,
    "baseline": pl.String,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "level": pl.Float64,
    "resamples": pl.Int64,
}

# By estimator: [1 + resamples] values, the observed one first, larger = better, NaN = undefined.
Values = Mapping[str, np.ndarray]


def improvement_intervals(
    resampled: pl.DataFrame, baselines: Sequence[str], studies: Mapping, level: float
) -> pl.DataFrame:
    """One row per metric for each (model, task) pair and each average of a study.

    `resampled` is the resamples of all pairs; `studies` holds `main` and perhaps `cross`. Rows of
    pairs have no `study`, averages over tasks no `task`, the cross study's average over models no
    `model`. `difference` is positive where TRACE+ is better, `baseline` the best one of the whole
    sample, `low` and `high` the percentiles that hold `level` of the `resamples` in which the
    difference is defined; null where it never is.
    """
    rows = []
    for metric, sign in SIGNS.items():
        by_pair = _values(resampled.filter(metric=metric), sign)
        for study, model, task, values in _scopes(by_pair, studies):
            difference, best = _difference(values, baselines)
            rows.append((study, model, task, metric, best, *_interval(difference, level)))
        if studies["cross"]:
            difference = _over_models(by_pair, studies["cross"], baselines)
            rows.append(("cross", None, None, metric, None, *_interval(difference, level)))
    return pl.DataFrame(rows, schema=INTERVALS, orient="row")


def _values(resampled: pl.DataFrame, sign: float) -> dict[tuple[str, str], Values]:
    """The values of each (model, task) pair, sorted."""
    by_pair: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    columns = ("model", "task", "estimator", "observed", "resampled")
    for model, task, estimator, *values in resampled.sort("model", "task").select(columns).rows():
        observed, drawn = values
        array = sign * np.array([observed, *drawn], dtype=float)
        by_pair.setdefault((model, task), {})[estimator] = array
    return by_pair


def _scopes(
    by_pair: Mapping[tuple[str, str], Values], studies: Mapping
) -> Iterator[tuple[str | None, str, str | None, Values]]:
    """Study, model, task and values of each pair, then of each model's average in a study."""
    for (model, task), values in by_pair.items():
        yield None, model, task, values
    main, cross = studies["main"], studies["cross"]
    yield "main", main["model"], None, _over_tasks(by_pair, main["model"], main["tasks"])
    for model in cross["models"] if cross else []:
        yield "cross", model, None, _over_tasks(by_pair, model, cross["tasks"])


def _over_tasks(
    by_pair: Mapping[tuple[str, str], Values], model: str, tasks: Sequence[str]
) -> Values:
    """Means over tasks, resamples taken by their number: tasks are drawn independently.

    As in the tables, a task counts where any estimator has a value on it, and an estimator
    without a value on each of those tasks has no average.
    """
    found = [by_pair[model, task] for task in tasks if (model, task) in by_pair]
    counted = [values for values in found if not all(np.isnan(v[0]) for v in values.values())]
    estimators = set.intersection(*map(set, counted)) if counted else set()
    return {name: np.mean([values[name] for values in counted], axis=0) for name in estimators}


def _difference(values: Values, baselines: Sequence[str]) -> tuple[np.ndarray, str | None]:
    """TRACE+ minus the best baseline of each resample; the observed best one's id."""
    rivals = [name for name in baselines if name in values]
    if TRACE_PLUS not in values or not rivals:
        return np.array([np.nan]), None
    observed = {name: values[name][0] for name in rivals if not np.isnan(values[name][0])}
    best = max(observed, key=observed.__getitem__) if observed else None
    return values[TRACE_PLUS] - np.fmax.reduce([values[name] for name in rivals]), best


def _over_models(
    by_pair: Mapping[tuple[str, str], Values], cross: Mapping, baselines: Sequence[str]
) -> np.ndarray:
    """The mean over the models whose observed difference is defined."""
    averages = [_over_tasks(by_pair, model, cross["tasks"]) for model in cross["models"]]
    differences = [_difference(values, baselines)[0] for values in averages]
    defined = [one for one in differences if not np.isnan(one[0])]
    return np.mean(defined, axis=0) if defined else np.array([np.nan])


def _interval(
    difference: np.ndarray, level: float
) -> tuple[float | None, float | None, float | None, float, int]:
    """Observed value, percentile bounds, their level, and from how many resamples."""
    observed = None if np.isnan(difference[0]) else float(difference[0])
    defined = difference[1:][~np.isnan(difference[1:])]
    if not len(defined):
        return observed, None, None, level, 0
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return observed, float(low), float(high), level, len(defined)
