"""The improvement of TRACE+ or an own score on a baseline, with a paired bootstrap's interval."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from trace_workflow.analyses.averages import AVERAGES
from trace_workflow.analyses.gains import GAINS, KEYS, SIGNS, gains, name_most_picked
from trace_workflow.analyses.study_files import StudyFiles, in_study, models_of
from tracecal.estimators.estimator import PICKED, TRACE_PLUS
from tracecal.fits.predictions import PICKS
from tracecal.io.files import read_parquet
from tracecal.statistics.resampling import RESAMPLES, interval

BOUNDED = {
    **GAINS,
    **dict.fromkeys(("low", "high", "level"), pl.Float64),
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
SignedValues = Mapping[str, np.ndarray]
ValuesByPair = Mapping[tuple[str, str], SignedValues]
UNDEFINED = np.array([np.nan])


def analysis(
    files: StudyFiles,
    baselines: Sequence[str],
    named_baseline: str,
    studies: Mapping[str, Mapping],
    level: float,
    own_scores: Sequence[str] = (),
) -> pl.DataFrame:
    """The improvements of a run, from its averages, and each pair's resamples and picks."""
    resampled = pl.concat(read_parquet(path, list(RESAMPLES)) for path in files["resamples"])
    picks = {
        (model, task): read_parquet(paths["picked"], list(PICKS))["baseline"].to_list()
        for model, task, paths in files.by_pair("picked")
    }
    averages = read_parquet(files["averages"], list(AVERAGES))
    gain_rows = gains(averages, baselines, named_baseline, own_scores)
    gain_rows = name_most_picked(gain_rows, picks, studies)
    return improvements(gain_rows, resampled, named_baseline, studies, level, own_scores)


def improvements(
    gain_rows: pl.DataFrame,
    resampled: pl.DataFrame,
    named_baseline: str,
    studies: Mapping[str, Mapping],
    level: float,
    own_scores: Sequence[str] = (),
) -> pl.DataFrame:
    """`gains` with intervals, and with counts of the wins on single tasks; columns IMPROVEMENTS.

    `resampled` has the rows of `resample_metrics` of all pairs. `low` and `high` bound the
    percentile interval that holds `level` of the `resamples` in which the difference is defined,
    None where it never is, and against the oracle. `supported`: whether the estimator is better and
    the interval lies above zero. `tasks` counts the pairs behind a row with a difference, `wins`
    the pairs on which the estimator is strictly better, and `supported_wins` the supported wins.
    """
    bounds = {}
    rivals = {"picked": PICKED, "named": named_baseline}
    compared = [(TRACE_PLUS, *rival) for rival in rivals.items()]
    rivals |= {TRACE_PLUS: TRACE_PLUS}
    compared += [(name, *rival) for name in own_scores for rival in rivals.items()]
    for metric in resampled["metric"].unique().sort():
        by_pair = signed_values(resampled.filter(metric=metric), SIGNS[metric])
        for estimator, against, baseline in compared:
            for scope, difference in differences(by_pair, studies, baseline, estimator).items():
                bounds[*scope, metric, estimator, against] = interval(difference[1:], level)
    return add_bounds(gain_rows, bounds, studies, level)


def add_bounds(
    gain_rows: pl.DataFrame,
    bounds: Mapping[tuple, tuple[float | None, float | None, int]],
    studies: Mapping[str, Mapping],
    level: float,
) -> pl.DataFrame:
    """As `improvements`; `bounds` has by KEYS the low and high end and the number of resamples."""
    bounded_rows = []
    for row in gain_rows.iter_rows(named=True):
        low, high, n_resamples = bounds.get(tuple(row[key] for key in KEYS), (None, None, 0))
        is_win = row["difference"] is not None and row["difference"] > 0
        supported = is_win and low is not None and low > 0
        ends = {"low": low, "high": high, "level": level, "resamples": n_resamples}
        bounded_rows.append(row | ends | {"supported": supported})
    rows = pl.DataFrame(bounded_rows, schema=BOUNDED)
    missing = pl.lit(None, pl.String)
    pairs = rows.filter(pl.col("study").is_null())
    parts = [pairs]
    for study, members in studies.items():
        in_tasks = pairs.filter(in_study(members)).with_columns(study=pl.lit(study), task=missing)
        parts += [in_tasks, in_tasks.with_columns(model=missing)]
    counts = pl.concat(parts).group_by(KEYS).agg(**COUNTS)
    joined = rows.join(counts, on=KEYS, how="left", nulls_equal=True, maintain_order="left")
    return joined.select(*IMPROVEMENTS).cast(IMPROVEMENTS)


def signed_values(resampled: pl.DataFrame, sign: float) -> ValuesByPair:
    """The values of each (model, task) pair, sorted."""
    by_pair: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    columns = ("model", "task", "estimator", "observed", "resampled")
    ordered = resampled.sort("model", "task").select(columns)
    for model, task, estimator, observed, values in ordered.iter_rows():
        array = sign * np.array([observed, *values], dtype=float)
        by_pair.setdefault((model, task), {})[estimator] = array
    return by_pair


def differences(
    by_pair: ValuesByPair,
    studies: Mapping[str, Mapping],
    baseline: str,
    estimator: str = TRACE_PLUS,
) -> dict[tuple, np.ndarray]:
    """By (study, model, task): the estimator minus the baseline, [1 + resamples].

    NaN where undefined.
    """
    by_scope = {
        (None, *pair): _subtract(values, estimator, baseline) for pair, values in by_pair.items()
    }
    for study, members in studies.items():
        of_models = {
            (study, model, None): _subtract(
                _mean_over_tasks(by_pair, model, members["tasks"]), estimator, baseline
            )
            for model in models_of(members)
        }
        by_scope |= of_models
        if "models" in members:
            defined = [values for values in of_models.values() if not np.isnan(values[0])]
            by_scope[study, None, None] = np.mean(defined, axis=0) if defined else UNDEFINED
    return by_scope


def _mean_over_tasks(by_pair: ValuesByPair, model: str, tasks: Sequence[str]) -> SignedValues:
    """Means over tasks of the resamples with the same number.

    As in `averages`, a task counts where any estimator has a value on it, and an estimator that
    lacks a value on one of these tasks has no average.
    """
    by_task = [by_pair[model, task] for task in tasks if (model, task) in by_pair]
    counted = [values for values in by_task if not all(np.isnan(v[0]) for v in values.values())]
    estimators = set.intersection(*map(set, counted)) if counted else set()
    return {name: np.mean([values[name] for values in counted], axis=0) for name in estimators}


def _subtract(values: SignedValues, estimator: str, baseline: str) -> np.ndarray:
    if estimator not in values or baseline not in values:
        return UNDEFINED
    return values[estimator] - values[baseline]
