"""The bootstrap: resamples of groups of answers, the same for every estimator.

Variants of one example have correlated outcomes, so whole groups are drawn (the
cluster bootstrap: Davison and Hinkley 1997, section 3.8). A resample is a vector of counts, how
often each example was drawn, and each metric is computed from the counts.

Fits vary too, but none is repeated for a resample. Each resample therefore draws splits as well,
with the calibrators fitted on them. Calibration parts overlap: where each holds a share c of the
answers, two fits have about that share in common, and K of them are worth 1 / (c + (1 - c) / K)
independent ones, 2.6 at 20 splits and c = 0.35. So two are drawn, not K (compare Nadeau and Bengio
2003).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.calibrate.measures import ratio
from tracecal.randomness import seeded

SPLITS_DRAWN = 2
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


def draw_counts(groups: Sequence[str], task: str, seed: int, resamples: int) -> np.ndarray:
    """How often each example is drawn in each resample, [resamples, n] whole numbers as floats.

    `groups` [n] holds each example's group; as many groups are drawn, with replacement, as there
    are. The draws depend only on the groups' names, the task and the seed.
    """
    names, member_of = np.unique(np.array(groups, dtype=str), return_inverse=True)
    draws = seeded(seed, task, "bootstrap").multinomial(
        len(names), np.full(len(names), 1 / len(names)), size=resamples
    )
    return draws[:, member_of].astype(float)


def draw_splits(splits: int, task: str, seed: int, resamples: int) -> np.ndarray:
    """How often each split counts, [splits, 1 + resamples]: once in the sample, then resampled."""
    if not splits:
        return np.ones((0, 1 + resamples))
    drawn = seeded(seed, task, "bootstrap splits").multinomial(
        SPLITS_DRAWN, np.full(splits, 1 / splits), size=resamples
    )
    return np.vstack([np.ones((1, splits)), drawn]).T


def group_counts(answers: pl.DataFrame, seed: int, resamples: int) -> np.ndarray:
    """`draw_counts` of the answers of several tasks, [resamples, n], in the rows' order.

    `answers` holds `task` and `group_id`; as many groups are drawn of each task as it has.
    """
    counts = np.empty((resamples, answers.height))
    for (task,), members in answers.with_row_index().group_by("task"):
        drawn = draw_counts(members["group_id"].to_list(), task, seed, resamples)
        counts[:, members["index"].to_numpy()] = drawn
    return counts


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


def brier(probability: np.ndarray, correct: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Brier scores [resamples] of probabilities [n], NaN where no example was drawn."""
    return ratio(counts @ (probability - correct) ** 2, counts.sum(axis=1))


def auroc(score: np.ndarray, correct: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Areas under the ROC curve [resamples] of scores [n], NaN where a class was not drawn.

    Share of (correct, incorrect) pairs ranked correctly; ties count one half.
    """
    order = np.argsort(score, kind="stable")
    ranked, positives, counts = score[order], correct[order], counts[:, order]
    tied = np.flatnonzero(np.diff(ranked, prepend=np.nan) != 0)
    positive = np.add.reduceat(counts * positives, tied, axis=1)
    negative = np.add.reduceat(counts * ~positives, tied, axis=1)
    below = np.cumsum(negative, axis=1) - negative / 2
    return ratio((positive * below).sum(axis=1), positive.sum(axis=1) * negative.sum(axis=1))


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
    drawn = draw_counts(answers["group_id"].to_list(), task, seed, resamples)
    counts = np.vstack([np.ones(len(answers)), drawn])
    splits = predictions["split"].unique().sort()
    in_resample = draw_splits(len(splits), task, seed, resamples)
    places = answers.with_row_index("place")
    rows = []
    for estimator in estimators:
        ranking = pl.col(estimator if estimator in scores.columns else "probability")
        labelled = (
            predictions.filter(estimator=estimator)
            .join(places, on="example_id", validate="m:1")
            .select("split", "place", "probability", "correct", score=ranking)
            .sort("split", "place")
        )
        metrics = {metric: np.full((len(splits), len(counts)), np.nan) for metric in RESAMPLED}
        for place, split in enumerate(splits):
            part, used = labelled.filter(split=split), in_resample[place] > 0
            if part.height:
                for metric, values in _of_split(part, counts[used]).items():
                    metrics[metric][place, used] = values
        for metric, values in metrics.items():
            defined = [
                None if np.isnan(mean) else mean for mean in _mean(values, in_resample).tolist()
            ]
            rows.append((model, task, estimator, metric, defined[0], defined[1:]))
    return pl.DataFrame(rows, schema=RESAMPLES, orient="row")


def _of_split(labelled: pl.DataFrame, counts: np.ndarray) -> dict[str, np.ndarray]:
    """The metrics [resamples] of one split's evaluated answers."""
    probability, score, correct = (
        labelled[name].to_numpy() for name in ("probability", "score", "correct")
    )
    drawn = counts[:, labelled["place"].to_numpy()]
    return {
        "brier": brier(probability, correct, drawn),
        "auroc": auroc(score, correct, drawn),
        "auroc_calibrated": auroc(probability, correct, drawn),
    }


def _mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted means [resamples] of the defined values; both arrays are [splits, resamples]."""
    defined_weights = np.where(np.isnan(values), 0.0, weights)
    return ratio((defined_weights * np.nan_to_num(values)).sum(axis=0), defined_weights.sum(axis=0))
