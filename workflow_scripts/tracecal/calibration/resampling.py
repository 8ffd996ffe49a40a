"""The bootstrap: resamples of groups of answers, the same for every estimator.

Variants of one example have correlated outcomes, so whole groups are drawn (the cluster bootstrap:
Davison and Hinkley 1997, section 3.8). A resample is a vector of counts, how often each example was
drawn, and each metric is computed from the counts. A group's counts are independent Poisson numbers
of mean 1 that depend on its name alone (Chamandy et al. 2012), so that tasks that ask about one
subject, and name its group alike, resample it together.

Fits vary too, but none is repeated for a resample. Each resample therefore draws splits as well,
with the calibrators fitted on them. Splits share most of their answers, so that their fits are
correlated and K of them are worth only a few independent ones: K drawn splits would give intervals
that are too short, and one or two such that are too long. SPLITS_DRAWN was chosen by refitting
everything on new data sets; `make validate` repeats that (compare Nadeau and Bengio 2003).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.calibration.proper_scores import weighted_brier
from tracecal.calibration.ranking import ratio, weighted_auroc
from tracecal.io.randomness import seeded

SPLITS_DRAWN = 4
RESAMPLED = ("brier", "auroc", "auroc_calibrated")
RESAMPLES = {
    "model": pl.String,
    "task": pl.String,
    "estimator": pl.String,
    "metric": pl.String,
    "observed": pl.Float64,
    "resampled": pl.List(pl.Float64),
}


class Bootstrap(NamedTuple):
    """Seed, number of resamples, and level of the intervals (0 to 1)."""

    seed: int
    resamples: int
    level: float


def draw_counts(groups: Sequence[str], seed: int, resamples: int) -> np.ndarray:
    """How often each example is drawn in each resample, [resamples, n] whole numbers as floats.

    `groups` [n] holds each example's group. The draws of a group depend only on its name and the
    seed.
    """
    names, member_of = np.unique(np.array(groups, dtype=str), return_inverse=True)
    drawn = [seeded(seed, "bootstrap", name).poisson(1.0, resamples) for name in names]
    return np.array(drawn, dtype=float).reshape(len(names), resamples).T[:, member_of]


def draw_splits(splits: int, task: str, seed: int, resamples: int) -> np.ndarray:
    """How often each split counts, [splits, 1 + resamples]: once in the sample, then resampled."""
    if not splits:
        return np.ones((0, 1 + resamples))
    drawn = seeded(seed, task, "bootstrap splits").multinomial(
        SPLITS_DRAWN, np.full(splits, 1 / splits), size=resamples
    )
    return np.vstack([np.ones((1, splits)), drawn]).T


def interval(
    values: Sequence[float | None] | np.ndarray, level: float
) -> tuple[float | None, float | None, int]:
    """The percentile interval that holds `level` of the defined values, and their number.

    Null and NaN are undefined; without any value the bounds are null.
    """
    drawn = np.array(values, dtype=float)
    defined = drawn[~np.isnan(drawn)]
    if not len(defined):
        return None, None, 0
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high), len(defined)


def resample_metrics(
    predictions: pl.DataFrame,
    answers: pl.DataFrame,
    scores: pl.DataFrame,
    *,
    model: str,
    task: str,
    estimators: Sequence[str],
    seed: int,
    resamples: int,
) -> pl.DataFrame:
    """RESAMPLED metrics of each estimator, on all examples and on each resample of them.

    `answers` holds `example_id`, `group_id` and `correct`. An observed value is the mean over the
    splits in which it is defined, as in `averages`; a resampled value is the mean over SPLITS_DRAWN
    splits, the same for all estimators. In each split it is measured on the evaluated examples, as
    often as they were drawn. 'auroc' ranks the estimator's column of `scores` where there is one,
    'auroc_calibrated' its probability. Examples without a prediction count for no metric. Undefined
    values (one class in every split) are null.
    """
    answers = answers.join(scores, on="example_id", how="left", validate="1:1").sort("example_id")
    correct = answers["correct"].to_numpy()
    drawn = draw_counts(answers["group_id"].to_list(), seed, resamples)
    counts = np.vstack([np.ones(len(answers)), drawn])
    splits = predictions["split"].unique().sort().to_list()
    in_resample = draw_splits(len(splits), task, seed, resamples)
    used = in_resample > 0
    counts_of = [counts[chosen] for chosen in used]
    parts = _by_split(predictions, answers["example_id"])
    keys, found = [], []
    for estimator in estimators:
        score = answers[estimator].to_numpy() if estimator in scores.columns else None
        metrics = {metric: np.full(in_resample.shape, np.nan) for metric in RESAMPLED}
        for row, split in enumerate(splits):
            if (estimator, split) not in parts:
                continue
            places, probability = parts[estimator, split]
            ranking = probability if score is None else score[places]
            weights = counts_of[row][:, places]
            measured = _of_split(probability, ranking, correct[places], weights)
            for metric, values in measured.items():
                metrics[metric][row, used[row]] = values
        keys += [(model, task, estimator, metric) for metric in metrics]
        found += [mean_over_splits(values, in_resample) for values in metrics.values()]
    values = np.array(found).reshape(len(keys), 1 + resamples)
    columns = {"observed": values[:, 0], "resampled": list(values[:, 1:])}
    return (
        pl.DataFrame(keys, schema=list(RESAMPLES)[:4], orient="row")
        .with_columns(pl.Series(name, column) for name, column in columns.items())
        .cast(RESAMPLES)
        .with_columns(
            pl.col("observed").fill_nan(None),
            pl.col("resampled").list.eval(pl.element().fill_nan(None)),
        )
    )


def _by_split(
    predictions: pl.DataFrame, ids: pl.Series
) -> dict[tuple[str, int], tuple[np.ndarray, np.ndarray]]:
    """By estimator and split, the places of its examples among `ids`, rising, and their
    probabilities.
    """
    places = pl.DataFrame({"example_id": ids}).with_row_index("place")
    grouped = (
        predictions.join(places, on="example_id", validate="m:1")
        .group_by("estimator", "split")
        .agg(pl.col("place", "probability").sort_by("place"))
    )
    return {
        (estimator, split): (place.to_numpy(), probability.to_numpy())
        for estimator, split, place, probability in zip(
            *(grouped[name] for name in ("estimator", "split", "place", "probability")), strict=True
        )
    }


def _of_split(
    probability: np.ndarray, score: np.ndarray, correct: np.ndarray, drawn: np.ndarray
) -> dict[str, np.ndarray]:
    """The metrics [resamples] of one split's answers [n], each `drawn` [resamples, n] times."""
    area = weighted_auroc(score, correct, drawn)
    direction = _direction(score, probability)
    calibrated = (
        area * direction + (1 - direction) / 2
        if direction
        else weighted_auroc(probability, correct, drawn)
    )
    return {
        "brier": weighted_brier(probability, correct, drawn),
        "auroc": area,
        "auroc_calibrated": calibrated,
    }


def _direction(score: np.ndarray, probability: np.ndarray) -> int:
    """1 where probabilities rank like scores, -1 where in reverse, else 0."""
    order = np.argsort(score)
    steps = np.sign(np.diff(probability[order]))
    rising = np.sign(np.diff(score[order]))
    return 1 if (steps == rising).all() else -1 if (steps == -rising).all() else 0


def mean_over_splits(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted means [resamples] of the defined values; both arrays are [splits, resamples]."""
    defined_weights = np.where(np.isnan(values), 0.0, weights)
    return ratio((defined_weights * np.nan_to_num(values)).sum(axis=0), defined_weights.sum(axis=0))
