"""Which estimator a calibrator recommends: the default, unless another is shown to be better."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.special import stdtrit

from tracecal.calibration.estimator_fits import EstimatorFits
from tracecal.calibrator.catalogue import LABELS, default_of
from tracecal.calibrator.settings import FitSettings
from tracecal.calibrator.training_set import TrainingSet

# A fit is a constant with fewer different probabilities, or with this share of answers at one.
MIN_VALUES, CONSTANT_SHARE = 5, 0.9
DIGITS = 6  # to which probabilities are compared


class Recommendation(NamedTuple):
    """The `estimator`, its `gain` over the default and the `ranking`, as a file holds them."""

    ranking: tuple[str, ...]
    estimator: str
    gain: tuple[float, float, float] | None = None


def recommend(
    training: TrainingSet, fits: Mapping[str, EstimatorFits], settings: FitSettings
) -> Recommendation:
    """Recommend the default, unless another's Brier score is lower by more than its interval.

    The scores are of cross-fits within the calibration part of the first split, so that the choice
    sees none of the answers that thresholds are tested on and the report counts. The interval holds
    for all estimators at once (Bonferroni). Where the default cannot be computed or is a constant,
    the estimator with the smallest Brier score that is none is recommended; of constants alone the
    default. Custom estimators are not considered.
    """
    default = default_of(training.estimators)
    built_in = {name: columns for name, columns in training.estimators.items() if name in LABELS}
    labels = training.frame.select("example_id", "correct", "group_id")
    considered = training._replace(estimators=built_in)
    errors = considered.cross_fitted(settings, "calibration").join(labels, on="example_id")
    squared = (pl.col("probability") - pl.col("correct")) ** 2
    errors = errors.with_columns(squared=squared)
    part = training.first_split.filter(part="calibration")
    rows = training.frame.join(part, on="example_id", how="semi")
    varied = {name for name, columns in built_in.items() if varies(rows, columns, fits[name])}
    ranking = tuple(sorted(_by_brier_score(errors), key=lambda name: name not in varied))
    if default not in varied:
        fixed = default if default in ranking and not varied.intersection(ranking) else ranking[0]
        return Recommendation(ranking, fixed)
    best = ranking[0]
    paired = errors.filter(estimator=default).join(
        errors.filter(estimator=best), on="example_id", suffix="_best"
    )
    level = 1 - (1 - settings.bootstrap.level) / max(len(varied) - 1, 1)
    difference = (paired["squared"] - paired["squared_best"]).to_numpy()
    gain = mean_interval(difference, paired["group_id"].to_numpy(), level)
    if best == default or not gain[1] > 0:
        return Recommendation(ranking, default)
    return Recommendation(ranking, best, gain)


def _by_brier_score(errors: pl.DataFrame) -> list[str]:
    """The estimators that predict the most answers, smallest mean of `squared` first."""
    scores = errors.group_by("estimator").agg(brier=pl.mean("squared"), n=pl.len())
    complete = scores.filter(pl.col("n") == pl.col("n").max())
    return complete.sort(pl.col("brier").round(12), "estimator")["estimator"].to_list()


def varies(rows: pl.DataFrame, columns: Sequence[str], fits: EstimatorFits) -> bool:
    """Whether the first split's fit gives the `rows` at least five different probabilities.

    None of them may be that of nine rows in ten.
    """
    x = rows.select(columns).drop_nulls().cast(pl.Float64).to_numpy()
    proba = fits.splits[0].predict(x).round(DIGITS)
    counts = np.unique(proba, return_counts=True)[1]
    return len(counts) >= MIN_VALUES and counts.max() < CONSTANT_SHARE * len(x)


def mean_interval(
    values: np.ndarray, groups: np.ndarray, level: float
) -> tuple[float, float, float]:
    """The mean of `values` [n] and the ends of its interval, by the variance between groups [n].

    Student's t with one degree of freedom fewer than groups; a single group has no interval.
    """
    mean = float(values.mean())
    _, member_of = np.unique(groups, return_inverse=True)
    totals = np.bincount(member_of, weights=values - mean)
    n_groups = len(totals)
    if n_groups < 2:
        return mean, -np.inf, np.inf
    error = np.sqrt(n_groups / (n_groups - 1) * (totals**2).sum()) / len(values)
    reach = float(stdtrit(n_groups - 1, (1 + level) / 2) * error)
    return mean, mean - reach, mean + reach
