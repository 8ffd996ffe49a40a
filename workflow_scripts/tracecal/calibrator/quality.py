"""How well each estimator of a training set predicts, with intervals."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit, logit, ndtri

from tracecal.calibration.probability_metrics import bin_index, weighted_brier
from tracecal.calibration.ranking import auroc_within
from tracecal.calibration.resampling import draw_counts, interval
from tracecal.calibrator.settings import FitSettings
from tracecal.calibrator.training_set import TrainingSet

# Intervals come from fewer resamples where they would draw more answers than this.
MAX_DRAWN, MIN_RESAMPLES = 4_000_000, 200
QUALITY = {
    "estimator": pl.String,
    "n": pl.Int64,
    **{
        f"{metric}{end}": pl.Float64
        for metric in ("brier", "auroc", "gap")
        for end in ("", "_low", "_high")
    },
    "ece": pl.Float64,
    "distinct": pl.Int64,
}


def measure_quality(
    training: TrainingSet, predictions: pl.DataFrame, settings: FitSettings
) -> pl.DataFrame:
    """Measure each estimator by `predictions` (`TrainingSet.cross_fitted`); columns of `QUALITY`.

    The smallest Brier score comes first. Only answers that no estimator is chosen by are counted
    (`TrainingSet.compared`). Intervals resample groups. `gap` is the
    mean probability minus the share correct; `distinct` counts the different probabilities. AUROC
    ranks the score itself where a fit is of one, and else the probability, among answers of one
    fold.
    """
    labels = training.frame.join(training.compared, on="example_id", how="semi")
    max_resamples = max(MIN_RESAMPLES, MAX_DRAWN // max(1, labels.height))
    resamples = min(settings.bootstrap.resamples, max_resamples)
    resampled = draw_counts(labels["rank"].to_list(), settings.seed, resamples)
    counts = np.vstack([np.ones(labels.height), resampled])
    labels = labels.with_row_index("place")
    rows = []
    for (name,), predicted in predictions.group_by("estimator"):
        first, *more = training.estimators[name]
        ranks_score = first.startswith("scores.") and not more
        columns = labels.select("example_id", "place", "correct", score=first)
        answers = predicted.join(columns, on="example_id", validate="1:1").sort("place")
        ranking = {"fold": pl.lit(0)} if ranks_score else {"score": "probability"}
        rows.append(_row(name, answers.with_columns(**ranking), counts, settings))
    return pl.DataFrame(rows, schema=QUALITY).sort(pl.col("brier").round(12), "estimator")


def _row(
    name: str, answers: pl.DataFrame, counts: np.ndarray, settings: FitSettings
) -> dict[str, Any]:
    proba, correct = answers["probability"].to_numpy(), answers["correct"].to_numpy()
    counts, fold = counts[:, answers["place"].to_numpy()], answers["fold"].to_numpy()
    bins = settings.calibration.ece_bins
    index = bin_index(proba, bins)
    # For each bin the weighted sum of correct minus probability, [resamples, bins].
    gaps = counts @ (np.eye(bins)[index] * (correct - proba)[:, None])
    totals = counts.sum(axis=1)
    values = {
        "brier": weighted_brier(proba, correct, counts),
        "auroc": auroc_within(answers["score"].to_numpy(), correct, counts, fold),
        "gap": -gaps.sum(axis=1) / np.maximum(totals, 1),
    }
    # Without an interval: that of resamples does not contain it, as each adds to the error.
    ece = float(np.abs(gaps[0]).sum() / max(totals[0], 1))
    row: dict[str, Any] = {"estimator": name, "n": answers.height, "ece": ece}
    for metric, (observed, *resampled) in values.items():
        ends = _ranking_interval if metric == "auroc" else _interval
        low, high = ends(observed, resampled, settings.bootstrap.level)
        value = None if math.isnan(observed) else float(observed)
        row |= {metric: value, f"{metric}_low": low, f"{metric}_high": high}
    return row | {"distinct": answers["probability"].n_unique()}


def _interval(
    observed: float, resampled: Sequence[float], level: float
) -> tuple[float | None, float | None]:
    return interval(resampled, level)[:2]


def _ranking_interval(
    observed: float, resampled: Sequence[float], level: float
) -> tuple[float | None, float | None]:
    """Normal on the scale of log odds, by the spread of the resamples.

    With few wrong answers their percentiles are too narrow near 1. Percentiles where the log odds
    are not finite.
    """
    low, high = _interval(observed, resampled, level)
    if low is None or not 0 < observed < 1:
        return low, high
    spread = np.nanstd(resampled) / (observed * (1 - observed))
    reach = ndtri((1 + level) / 2) * spread
    ends = expit(logit(observed) + np.array([-reach, reach]))
    return float(ends[0]), float(ends[1])
