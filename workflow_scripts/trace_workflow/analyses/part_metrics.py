"""Metrics of parts of answers: over all parts, within strata, in a review; and their intervals.

1. `read_parts` reads the labelled parts, and `sample_and_resamples` draws their weights.
2. A metric takes arrays: `score` and `correct` [n], and `weights` [resamples, n], the counts of
   each part, equal within an answer. Its values are [resamples].
3. `bounds_of` makes the columns BOUNDS of them.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet
from tracecal.statistics.ranking_metrics import ratio, weighted_auroc
from tracecal.statistics.resampling import Resampling, draw_counts, interval

BOUNDS = dict.fromkeys(("value", "low", "high", "level"), pl.Float64) | {"resamples": pl.Int64}


def read_parts(questions: str, labels: str) -> pl.DataFrame:
    """`example_id`, `parent_id`, `group_id`, `part` and `correct` of the parts of answers.

    From the files of a pair, sorted by `example_id`.
    """
    correct = read_parquet(labels, ["example_id", "correct"])
    return evaluated(correct, questions, ["parent_id", "group_id", "part"])


def sample_and_resamples(groups: Sequence[str], bootstrap: Resampling) -> np.ndarray:
    """The counts of each row, [1 + resamples, n]: one in the sample, then as drawn."""
    counts = draw_counts(groups, bootstrap.seed, bootstrap.resamples)
    return np.vstack([np.ones((1, len(groups))), counts])


def bounds_of(values: np.ndarray, level: float) -> tuple:
    """The columns BOUNDS of a metric's values [1 + resamples], the sample's first."""
    low, high, n_defined = interval(values[1:], level)
    return None if np.isnan(values[0]) else float(values[0]), low, high, level, n_defined


def auroc(score: np.ndarray, correct: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The AUROC among all parts; NaN without parts."""
    return weighted_auroc(score, correct, weights) if len(score) else _undefined(weights)


def auroc_within_strata(
    score: np.ndarray, correct: np.ndarray, weights: np.ndarray, strata: np.ndarray
) -> np.ndarray:
    """The share of (right, wrong) pairs of the same stratum in the right order."""
    ranked, pairs = np.zeros(len(weights)), np.zeros(len(weights))
    for stratum in np.unique(strata):
        inside = strata == stratum
        stratum_weights = weights[:, inside]
        right = (stratum_weights * correct[inside]).sum(1)
        n_pairs = right * (stratum_weights * ~correct[inside]).sum(1)
        area = weighted_auroc(score[inside], correct[inside], stratum_weights)
        ranked += np.where(n_pairs > 0, n_pairs * np.nan_to_num(area), 0)
        pairs += n_pairs
    return ratio(ranked, pairs)


def auroc_within_answers(
    score: np.ndarray, correct: np.ndarray, weights: np.ndarray, answers: np.ndarray
) -> np.ndarray:
    """As `auroc_within_strata`, for the parts of the same answer.

    Bootstrap copies of an answer are not paired.
    """
    rows = pl.DataFrame({"answer": answers, "score": score, "correct": correct})
    right, wrong = rows.filter("correct"), rows.filter(~pl.col("correct"))
    above, equal = pl.col("score") > pl.col("score_wrong"), pl.col("score") == pl.col("score_wrong")
    pairs = right.join(wrong, on="answer", suffix="_wrong").group_by("answer")
    sums = pairs.agg(ranked=(above + equal * 0.5).sum(), number=pl.len()).sort("answer")
    counts = _answer_weights(weights, answers)[:, sums["answer"].to_numpy()]
    n_pairs = sums["number"].to_numpy().astype(float)
    return ratio(counts @ sums["ranked"].to_numpy(), counts @ n_pairs)


def lowest_wrong(
    score: np.ndarray, correct: np.ndarray, weights: np.ndarray, answers: np.ndarray
) -> np.ndarray:
    """The share of answers with right and wrong parts whose lowest score is a wrong part's."""
    rows = pl.DataFrame({"answer": answers, "score": score, "correct": correct})
    is_mixed = pl.col("correct").any() & ~pl.col("correct").all()
    mixed = rows.filter(is_mixed.over("answer"))
    lowest = mixed.filter(pl.col("score") == pl.col("score").min().over("answer"))
    hits = lowest.group_by("answer").agg(hit=(~pl.col("correct")).mean()).sort("answer")
    counts = _answer_weights(weights, answers)[:, hits["answer"].to_numpy()]
    return ratio(counts @ hits["hit"].to_numpy(), counts.sum(1))


def found_in_review(
    score: np.ndarray, correct: np.ndarray, weights: np.ndarray, share: float
) -> np.ndarray:
    """The share of all wrong parts that is among the `share` of parts with the lowest scores."""
    if not len(score):
        return _undefined(weights)
    order = np.argsort(score, kind="stable")
    starts_of_ties = np.flatnonzero(np.diff(score[order], prepend=np.nan) != 0)
    ordered_weights = weights[:, order]
    sizes = np.add.reduceat(ordered_weights, starts_of_ties, axis=1)
    wrong = np.add.reduceat(ordered_weights * ~correct[order], starts_of_ties, axis=1)
    limit = share * sizes.sum(1, keepdims=True)
    reviewed = np.clip(limit - (np.cumsum(sizes, axis=1) - sizes), 0, sizes)
    shares = np.divide(reviewed, sizes, out=np.zeros_like(reviewed), where=sizes > 0)
    return ratio((wrong * shares).sum(1), wrong.sum(1))


def _answer_weights(weights: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """The counts of each answer, [resamples, answers]."""
    return weights[:, np.unique(answers, return_index=True)[1]]


def _undefined(weights: np.ndarray) -> np.ndarray:
    return np.full(len(weights), np.nan)
