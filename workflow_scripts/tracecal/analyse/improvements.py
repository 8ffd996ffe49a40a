"""How much better TRACE+ is than a baseline, with an interval from the paired bootstrap.

The comparisons are those of `tracecal.analyse.gains`. The picked and the named baseline have
intervals; the oracle is a point: the largest of several noisy values lies above the largest of
their expectations, and an interval that chose anew in every resample would count that bias twice.

Both sides are measured split by split on the same resampled answers, so the interval is that of the
reported difference, a mean over splits. It covers the variation due to the questions and due to the
splits, their fits and their picks (`tracecal.analyse.bootstrap`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from tracecal.analyse.averages import AVERAGES
from tracecal.analyse.bootstrap import RESAMPLES, interval
from tracecal.analyse.gains import GAINS, KEYS, SIGNS, TRACE_PLUS, gains, with_picks
from tracecal.analyse.studies import models_of, of_study
from tracecal.calibrate.picked import PICKED, PICKS
from tracecal.storage.files import read_parquet

BOUNDED = GAINS | {
    "low": pl.Float64,
    "high": pl.Float64,
    "level": pl.Float64,
    "resamples": pl.Int64,
    "supported": pl.Boolean,
}
COUNTS = {
    "tasks": pl.col("difference").is_not_null().sum(),
    "wins": (pl.col("difference") > 0).sum(),
    "supported_wins": pl.col("supported").sum(),
}
IMPROVEMENTS = BOUNDED | dict.fromkeys(COUNTS, pl.Int64)

# By estimator: values [1 + resamples], the sample's first; larger = better, NaN = undefined.
Values = Mapping[str, np.ndarray]
Pairs = Mapping[tuple[str, str], Values]
UNDEFINED = np.array([np.nan])


def analysis(
    averages: str,
    resamples: Sequence[str],
    picked: Sequence[str],
    pairs: Sequence[Sequence[str]],
    baselines: Sequence[str],
    named: str,
    studies: Mapping[str, Mapping],
    level: float,
) -> pl.DataFrame:
    """The improvements of a run, from its averages, and each pair's resamples and picks."""
    resampled = pl.concat(read_parquet(path, list(RESAMPLES)) for path in resamples)
    picks = {
        tuple(pair): read_parquet(path, list(PICKS))["baseline"].to_list()
        for pair, path in zip(pairs, picked, strict=True)
    }
    gained = gains(read_parquet(averages, list(AVERAGES)), baselines, named)
    return improvements(with_picks(gained, picks, studies), resampled, named, studies, level)


def improvements(
    gain_rows: pl.DataFrame,
    resampled: pl.DataFrame,
    named: str,
    studies: Mapping[str, Mapping],
    level: float,
) -> pl.DataFrame:
    """`gains` with intervals, and with counts of the wins on single tasks; columns IMPROVEMENTS.

    `resampled` has the rows of `resample_metrics` of all pairs. `low` and `high` bound the
    percentile interval that holds `level` of the `resamples` in which the difference is defined,
    null where it never is, and against the oracle. `supported`: whether TRACE+ is better and the
    interval lies above zero. Of the pairs behind a row, `tasks` have a difference, `wins` are those
    where TRACE+ is strictly better, and `supported_wins` those whose win is supported.
    """
    bounds = {}
    for metric in resampled["metric"].unique().sort():
        by_pair = values_of(resampled.filter(metric=metric), SIGNS[metric])
        for against, baseline in (("picked", PICKED), ("named", named)):
            for scope, difference in differences(by_pair, studies, baseline).items():
                bounds[*scope, metric, against] = interval(difference[1:], level)
    return bounded(gain_rows, bounds, studies, level)


def bounded(
    gain_rows: pl.DataFrame,
    bounds: Mapping[tuple, tuple[float | None, float | None, int]],
    studies: Mapping[str, Mapping],
    level: float,
) -> pl.DataFrame:
    """As `improvements`; `bounds` has by KEYS the low and high end and number of resamples."""
    rows = []
    for row in gain_rows.iter_rows(named=True):
        low, high, resamples = bounds.get(tuple(row[key] for key in KEYS), (None, None, 0))
        won = row["difference"] is not None and row["difference"] > 0
        supported = won and low is not None and low > 0
        ends = {"low": low, "high": high, "level": level, "resamples": resamples}
        rows.append(row | ends | {"supported": supported})
    return _counted(pl.DataFrame(rows, schema=BOUNDED), studies)


def _counted(frame: pl.DataFrame, studies: Mapping[str, Mapping]) -> pl.DataFrame:
    """The frame with COUNTS."""
    null = pl.lit(None, pl.String)
    pairs = frame.filter(pl.col("study").is_null())
    parts = [pairs]
    for study, study_settings in studies.items():
        study_pairs = pairs.filter(of_study(study_settings)).with_columns(
            study=pl.lit(study), task=null
        )
        parts += [study_pairs, study_pairs.with_columns(model=null)]
    counted = pl.concat(parts).group_by(KEYS).agg(**COUNTS)
    joined = frame.join(counted, on=KEYS, how="left", nulls_equal=True, maintain_order="left")
    return joined.select(*IMPROVEMENTS).cast(IMPROVEMENTS)


def values_of(resampled: pl.DataFrame, sign: float) -> Pairs:
    """The values of each (model, task) pair, sorted."""
    by_pair: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    columns = ("model", "task", "estimator", "observed", "resampled")
    ordered = resampled.sort("model", "task").select(columns)
    for model, task, estimator, observed, drawn in ordered.iter_rows():
        array = sign * np.array([observed, *drawn], dtype=float)
        by_pair.setdefault((model, task), {})[estimator] = array
    return by_pair


def differences(
    by_pair: Pairs, studies: Mapping[str, Mapping], baseline: str
) -> dict[tuple, np.ndarray]:
    """By (study, model, task): TRACE+ minus the baseline, [1 + resamples], NaN where undefined."""
    found = {(None, *pair): _difference_of(values, baseline) for pair, values in by_pair.items()}
    for study, study_settings in studies.items():
        tasks = study_settings["tasks"]
        of_models = {
            (study, model, None): _difference_of(_over_tasks(by_pair, model, tasks), baseline)
            for model in models_of(study_settings)
        }
        found |= of_models
        if "models" in study_settings:
            defined = [values for values in of_models.values() if not np.isnan(values[0])]
            found[study, None, None] = np.mean(defined, axis=0) if defined else UNDEFINED
    return found


def _over_tasks(by_pair: Pairs, model: str, tasks: Sequence[str]) -> Values:
    """Means over tasks of the resamples with the same number.

    As in `averages`, a task counts where any estimator has a value on it, and an estimator that
    lacks a value on one of these tasks has no average.
    """
    by_task = [by_pair[model, task] for task in tasks if (model, task) in by_pair]
    counted = [values for values in by_task if not all(np.isnan(v[0]) for v in values.values())]
    estimators = set.intersection(*map(set, counted)) if counted else set()
    return {name: np.mean([values[name] for values in counted], axis=0) for name in estimators}


def _difference_of(values: Values, baseline: str) -> np.ndarray:
    if TRACE_PLUS not in values or baseline not in values:
        return UNDEFINED
    return values[TRACE_PLUS] - values[baseline]
