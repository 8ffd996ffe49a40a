"""The bootstrap: resamples of groups of answers, the same for every estimator.

1. `draw_counts` says how often each example is drawn in each resample, `draw_splits` how often each
   split counts.
2. `resample_metrics` measures all estimators on all resamples.
3. `interval` gives the ends of an interval.

Variants of one example have correlated outcomes, so whole groups are drawn (the cluster bootstrap:
Davison and Hinkley 1997, section 3.8). A group's counts are independent Poisson numbers of mean 1
that depend on its name alone (Chamandy et al. 2012), so that tasks about one subject, which name
its group alike, resample it together. Each metric is computed from the counts.

Fits vary, too, but none is repeated for a resample. Each resample therefore draws splits as well,
with the calibrators fitted on them. Splits share most of their answers, so that their fits are
correlated and K of them are worth only a few independent ones: K drawn splits would make intervals
too short, and one or two would make them too long. SPLITS_PER_RESAMPLE was chosen by refitting
everything on new data sets; `make validate` repeats that (compare Nadeau and Bengio 2003).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.io.randomness import seeded
from tracecal.statistics.probability_metrics import weighted_brier
from tracecal.statistics.ranking_metrics import ratio, weighted_auroc

SPLITS_PER_RESAMPLE = 4
RESAMPLED_METRICS = ("brier", "auroc", "auroc_calibrated")
RESAMPLES = {
    "model": pl.String,
    "task": pl.String,
    "estimator": pl.String,
    "metric": pl.String,
    "observed": pl.Float64,
    "resampled": pl.List(pl.Float64),
}


class Resampling(NamedTuple):
    """The seed, the number of resamples, and the level of intervals (0 to 1)."""

    seed: int
    resamples: int
    level: float


def draw_counts(groups: Sequence[str], seed: int, resamples: int) -> np.ndarray:
    """Draw how often each example counts in each resample: whole numbers as floats [resamples, n].

    `groups` [n] holds each example's group. A group's counts depend only on its name and the seed.
    """
    names, index = np.unique(np.array(groups, dtype=str), return_inverse=True)
    counts = [seeded(seed, "bootstrap", name).poisson(1.0, resamples) for name in names]
    return np.array(counts, dtype=float).reshape(len(names), resamples).T[:, index]


def draw_splits(n_splits: int, task: str, seed: int, resamples: int) -> np.ndarray:
    """Draw how often each split counts: once in the sample, then in each resample.

    The result is [splits, 1 + resamples].
    """
    if not n_splits:
        return np.ones((0, 1 + resamples))
    counts = seeded(seed, task, "bootstrap splits").multinomial(
        SPLITS_PER_RESAMPLE, np.full(n_splits, 1 / n_splits), size=resamples
    )
    return np.vstack([np.ones((1, n_splits)), counts]).T


def interval(
    values: Sequence[float | None] | np.ndarray, level: float
) -> tuple[float | None, float | None, int]:
    """Return the ends of the percentile interval of the defined values, and their number.

    None and NaN are undefined; without any value the ends are None.

    >>> interval([0.0, 1.0, None, 2.0], 0.5)
    (0.5, 1.5, 3)
    """
    array = np.array(values, dtype=float)
    defined = array[~np.isnan(array)]
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
    """Measure each estimator on all examples and on each resample of them (`RESAMPLES`).

    `answers` has `example_id`, `group_id` and `correct`. An observed value is the mean over the
    splits in which it is defined, as in `averages`; a resampled value is the mean over
    SPLITS_PER_RESAMPLE splits, the same for all estimators. 'auroc' ranks the estimator's column of
    `scores` where there is one, 'auroc_calibrated' its probability. Examples without a prediction
    count for no metric. Undefined values (one class in every split) are missing.
    """
    answers = answers.join(scores, on="example_id", how="left", validate="1:1").sort("example_id")
    correct = answers["correct"].to_numpy()
    resampled_counts = draw_counts(answers["group_id"].to_list(), seed, resamples)
    counts = np.vstack([np.ones(len(answers)), resampled_counts])
    splits = predictions["split"].unique().sort().to_list()
    split_counts = draw_splits(len(splits), task, seed, resamples)
    is_counted = split_counts > 0
    counts_by_split = [counts[rows] for rows in is_counted]
    rated = _by_split(predictions, answers["example_id"])
    keys, means = [], []
    for estimator in estimators:
        score = answers[estimator].to_numpy() if estimator in scores.columns else None
        metrics = {name: np.full(split_counts.shape, np.nan) for name in RESAMPLED_METRICS}
        for row, split in enumerate(splits):
            if (estimator, split) not in rated:
                continue
            index, probability = rated[estimator, split]
            ranking = probability if score is None else score[index]
            weights = counts_by_split[row][:, index]
            for name, values in _measure(probability, ranking, correct[index], weights).items():
                metrics[name][row, is_counted[row]] = values
        keys += [(model, task, estimator, name) for name in metrics]
        means += [mean_over_splits(values, split_counts) for values in metrics.values()]
    values = np.array(means).reshape(len(keys), 1 + resamples)
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
    """Return by estimator and split the rising indices of examples in `ids`, and probabilities."""
    indices = pl.DataFrame({"example_id": ids}).with_row_index("index")
    grouped = (
        predictions.join(indices, on="example_id", validate="m:1")
        .group_by("estimator", "split")
        .agg(pl.col("index", "probability").sort_by("index"))
    )
    columns = (grouped[name] for name in ("estimator", "split", "index", "probability"))
    return {
        (estimator, split): (index.to_numpy(), probability.to_numpy())
        for estimator, split, index, probability in zip(*columns, strict=True)
    }


def _measure(
    probability: np.ndarray, score: np.ndarray, correct: np.ndarray, weights: np.ndarray
) -> dict[str, np.ndarray]:
    """The metrics [resamples] of one split's answers [n] under `weights` [resamples, n]."""
    area = weighted_auroc(score, correct, weights)
    direction = _direction(score, probability)
    calibrated = (
        area * direction + (1 - direction) / 2
        if direction
        else weighted_auroc(probability, correct, weights)
    )
    return {
        "brier": weighted_brier(probability, correct, weights),
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
