"""How much better TRACE+ is than the best baseline, with an interval from the paired bootstrap.

"Best" is an oracle: per metric, whichever baseline comes out first on average over the splits. In
the bootstrap it is chosen anew in every resample, so that the interval also holds how uncertain
the choice is. The largest of several noisy values lies above the largest of their expectations, in
the sample and once more in each resample, and so this choice leans against TRACE+: an interval
below zero proves no loss.

Both sides are measured split by split on the same resampled answers: the interval is that
of the reported difference, a mean over splits. It covers the variation by the questions and by
the splits and their fits (`tracecal.analyse.bootstrap`).
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np
import polars as pl

from tracecal.analyse.averages import AVERAGES, mean_series, spread
from tracecal.analyse.bootstrap import RESAMPLES, interval
from tracecal.analyse.studies import models_of, of_study
from tracecal.storage.files import read_parquet

TRACE_PLUS = "trace_plus"
# Signs that make larger values better.
SIGNS = {
    "brier": -1.0,
    "ece": -1.0,
    "nll": -1.0,
    "aurc": -1.0,
    "auroc": 1.0,
    "auroc_calibrated": 1.0,
    "prr": 1.0,
}
SCOPE = ("study", "model", "task", "metric")
GAINS = {
    "study": pl.String,
    "model": pl.String,
    "task": pl.String,
    "metric": pl.String,
    "baseline": pl.String,
    "reference": pl.Float64,
    "reference_sd": pl.Float64,
    "value": pl.Float64,
    "value_sd": pl.Float64,
    "difference": pl.Float64,
    "difference_sd": pl.Float64,
    "splits": pl.Int64,
    "undefined": pl.Int64,
}
IMPROVEMENTS = GAINS | {
    "low": pl.Float64,
    "high": pl.Float64,
    "level": pl.Float64,
    "resamples": pl.Int64,
    "supported": pl.Boolean,
    "tasks": pl.Int64,
    "wins": pl.Int64,
    "supported_wins": pl.Int64,
}

# By estimator: [resamples] values, larger = better, NaN = undefined.
Values = Mapping[str, np.ndarray]
Pairs = Mapping[tuple[str, str], Values]


def analysis(
    averages: str,
    resamples: Sequence[str],
    baselines: Sequence[str],
    studies: Mapping[str, Mapping | None],
    level: float,
) -> pl.DataFrame:
    """The improvements of a run, from its averages and the files of each pair's resamples."""
    resampled = pl.concat(read_parquet(path, list(RESAMPLES)) for path in resamples)
    gained = gains(read_parquet(averages, list(AVERAGES)), baselines)
    return improvements(gained, resampled, baselines, studies, level)


def gains(averages: pl.DataFrame, baselines: Sequence[str], by: Sequence[str] = ()) -> pl.DataFrame:
    """One row per metric and scope of `averages`: GAINS after the columns `by`.

    `reference` is the average of the best of `baselines`, `value` that of TRACE+, `difference` by
    how much TRACE+ is better; each has its s.d. over splits. `undefined` is the largest number of
    the `splits` in which one of these estimators has no value. Where one side lacks an average
    the difference is null. The cross study's row without a model is the mean over its models
    whose difference is defined.
    """
    keys = [*by, *SCOPE]
    compared = averages.filter(
        pl.col("estimator").is_in([*baselines, TRACE_PLUS]), pl.col("metric").is_in(list(SIGNS))
    ).sort(*keys, "estimator")
    rows, cross = [], {}
    for key, members in compared.group_by(keys, maintain_order=True):
        scope = dict(zip(keys, key, strict=True))
        if scope["study"] and not scope["model"]:
            continue
        by_estimator = {row["estimator"]: row for row in members.iter_rows(named=True)}
        rows.append(scope | _gain(by_estimator, baselines, SIGNS[scope["metric"]]))
        if scope["study"] == "cross":
            cross.setdefault(tuple(scope[key] for key in (*by, "metric")), []).append(rows[-1])
    for (*divided, metric), models in cross.items():
        scope = dict(zip(by, divided, strict=True))
        scope |= {"study": "cross", "model": None, "task": None, "metric": metric}
        rows.append(scope | _mean_gain(models))
    # The series of single splits served the s.d. alone.
    schema = dict.fromkeys(by, pl.String) | GAINS
    listed = [{name: row[name] for name in schema} for row in rows]
    return pl.DataFrame(listed, schema=schema).sort(keys)


def _gain(by_estimator: Mapping[str, Mapping], baselines: Sequence[str], sign: float) -> dict:
    """The gain over the baseline whose `mean` is best, the first of equal ones."""
    rivals = {name: by_estimator[name] for name in baselines if name in by_estimator}
    signed = {name: sign * row["mean"] for name, row in rivals.items() if row["mean"] is not None}
    best = max(signed, key=signed.__getitem__) if signed else None
    reference, value = by_estimator.get(best), by_estimator.get(TRACE_PLUS)
    sides = [(row["mean"], row["values"]) if row else (None, []) for row in (reference, value)]
    return _compared(*sides, sign) | {
        "baseline": best,
        "splits": max(row["splits"] for row in by_estimator.values()),
        "undefined": max(row["undefined"] for row in by_estimator.values()),
    }


Side = tuple[float | None, Sequence[float | None]]


def _compared(reference: Side, value: Side, sign: float) -> dict:
    """Both sides' means and s.d., and those of the differences; a side is a mean and its series."""
    (reference_mean, reference_series), (value_mean, value_series) = reference, value
    pairs = (
        zip(reference_series, value_series, strict=True)
        if reference_series and value_series
        else ()
    )
    series = [None if None in pair else _difference(*pair, sign) for pair in pairs]
    return {
        "reference": reference_mean,
        "reference_sd": spread(reference_series),
        "value": value_mean,
        "value_sd": spread(value_series),
        "difference": None
        if None in (reference_mean, value_mean)
        else _difference(reference_mean, value_mean, sign),
        "difference_sd": spread(series),
        "series": (reference_series, value_series),
        "sign": sign,
    }


def _difference(reference: float, value: float, sign: float) -> float:
    return value - reference if sign > 0 else reference - value


def _mean_gain(models: Sequence[Mapping]) -> dict:
    """The mean of the models whose difference is defined."""
    defined = [model for model in models if model["difference"] is not None]

    def side(name: str, place: int) -> Side:
        means = [model[name] for model in defined]
        return (fmean(means) if means else None), mean_series([m["series"][place] for m in defined])

    mean = _compared(side("reference", 0), side("value", 1), models[0]["sign"])
    return mean | {
        "baseline": None,
        "splits": max(model["splits"] for model in models),
        "undefined": max(model["undefined"] for model in models),
    }


def improvements(
    gain_rows: pl.DataFrame,
    resampled: pl.DataFrame,
    baselines: Sequence[str],
    studies: Mapping[str, Mapping | None],
    level: float,
) -> pl.DataFrame:
    """`gains` with intervals, and with counts of the wins on single tasks; columns IMPROVEMENTS.

    `resampled` is what `resample_metrics` gives of all pairs. `low` and `high` are the percentiles
    that hold `level` of the `resamples` in which the difference is defined, null where it never
    is. `supported`: whether TRACE+ is better and the interval lies above zero. `tasks`, `wins`
    and `supported_wins` count, of the pairs that a row is made of, those with a difference, those
    where TRACE+ is strictly better, and those whose win is supported.
    """
    bounds = {}
    for metric in resampled["metric"].unique().sort():
        by_pair = _values(resampled.filter(metric=metric), SIGNS[metric])
        for scope, difference in _differences(by_pair, studies, baselines):
            bounds[*scope, metric] = interval(difference, level)
    return bounded(gain_rows, bounds, studies, level)


def bounded(
    gain_rows: pl.DataFrame,
    bounds: Mapping[tuple, tuple[float | None, float | None, int]],
    studies: Mapping[str, Mapping | None],
    level: float,
) -> pl.DataFrame:
    """As `improvements`; `bounds` holds by SCOPE where intervals begin and end, and of how many
    resamples.
    """
    rows = []
    for row in gain_rows.iter_rows(named=True):
        low, high, resamples = bounds.get(tuple(row[key] for key in SCOPE), (None, None, 0))
        won = row["difference"] is not None and row["difference"] > 0
        supported = won and low is not None and low > 0
        ends = {"low": low, "high": high, "level": level, "resamples": resamples}
        rows.append(row | ends | {"supported": supported})
    frame = pl.DataFrame(rows, schema={k: IMPROVEMENTS[k] for k in (*GAINS, *ENDS)})
    return _counted(frame, studies)


ENDS = ("low", "high", "level", "resamples", "supported")


def _counted(frame: pl.DataFrame, studies: Mapping[str, Mapping | None]) -> pl.DataFrame:
    """The frame with `tasks`, `wins` and `supported_wins`."""
    pairs = frame.filter(pl.col("study").is_null())
    counts = (
        pl.col("difference").is_not_null().sum().alias("tasks"),
        (pl.col("difference") > 0).sum().alias("wins"),
        pl.col("supported").sum().alias("supported_wins"),
    )
    parts = [pairs.group_by(SCOPE).agg(counts)]
    for study, study_settings in studies.items():
        if study_settings is None:
            continue
        study_pairs = pairs.filter(of_study(study_settings)).with_columns(
            study=pl.lit(study), task=pl.lit(None, pl.String)
        )
        parts.append(study_pairs.group_by(SCOPE).agg(counts))
        overall = study_pairs.with_columns(model=pl.lit(None, pl.String))
        parts.append(overall.group_by(SCOPE).agg(counts))
    counted = pl.concat(parts).with_columns(pl.col("tasks", "wins", "supported_wins").cast(int))
    return frame.join(
        counted, on=SCOPE, how="left", nulls_equal=True, maintain_order="left"
    ).select(*IMPROVEMENTS)


def _values(resampled: pl.DataFrame, sign: float) -> Pairs:
    """The values of each (model, task) pair, sorted; the first is that of the whole sample."""
    by_pair: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    columns = ("model", "task", "estimator", "observed", "resampled")
    for model, task, estimator, *values in resampled.sort("model", "task").select(columns).rows():
        observed, drawn = values
        array = sign * np.array([observed, *drawn], dtype=float)
        by_pair.setdefault((model, task), {})[estimator] = array
    return by_pair


def _differences(
    by_pair: Pairs, studies: Mapping[str, Mapping | None], baselines: Sequence[str]
) -> list[tuple[tuple, np.ndarray]]:
    """(study, model, task) and the resampled differences of every scope."""
    differences = [
        ((None, *pair), _resampled(values, baselines)) for pair, values in by_pair.items()
    ]
    for study, study_settings in studies.items():
        if study_settings is None:
            continue
        models, tasks = models_of(study_settings), study_settings["tasks"]
        means = [_over_tasks(by_pair, model, tasks) for model in models]
        each = [_resampled(values, baselines) for values in means]
        differences += [
            ((study, model, None), difference)
            for model, difference in zip(models, each, strict=True)
        ]
        if "models" in study_settings:
            defined = [difference for difference in each if not np.isnan(difference[0])]
            mean = np.mean(defined, axis=0) if defined else np.array([np.nan])
            differences.append(((study, None, None), mean))
    return [(scope, difference[1:]) for scope, difference in differences]


def _over_tasks(by_pair: Pairs, model: str, tasks: Sequence[str]) -> Values:
    """Means over tasks, resamples taken by their number: tasks are drawn independently.

    As in `averages`, a task counts where any estimator has a value on it, and an estimator
    without a value on each of those tasks has no average.
    """
    by_task = [by_pair[model, task] for task in tasks if (model, task) in by_pair]
    counted = [values for values in by_task if not all(np.isnan(v[0]) for v in values.values())]
    estimators = set.intersection(*map(set, counted)) if counted else set()
    return {name: np.mean([values[name] for values in counted], axis=0) for name in estimators}


def _resampled(values: Values, baselines: Sequence[str]) -> np.ndarray:
    """TRACE+ minus the best baseline of each resample."""
    rivals = [values[name] for name in baselines if name in values]
    if TRACE_PLUS not in values or not rivals:
        return np.array([np.nan])
    return values[TRACE_PLUS] - np.fmax.reduce(rivals)
