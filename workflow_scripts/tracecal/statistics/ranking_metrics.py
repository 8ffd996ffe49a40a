"""Ranking metrics: how well confidence puts right answers before wrong ones.

1. `wrong_by_rank` ranks sets of answers [sets, answers] by their scores.
2. `auroc`, `aurc` and `prr` take its result.

The weighted variants measure one set of answers under many weights, for the bootstrap.
"""

import numpy as np


def wrong_by_rank(score: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """The probability that the k-th most confident answer is wrong, k = 1..n, over orders of ties.

    It is 0 or 1, or the share of wrong answers among those with equal scores.

    >>> wrong_by_rank(np.array([[0.2, 0.9, 0.2]]), np.array([[True, True, False]])).tolist()
    [[0.0, 0.5, 0.5]]
    """
    order = np.argsort(-score, axis=1)
    wrong = np.take_along_axis(~correct, order, axis=1).astype(float)
    ranked = np.take_along_axis(score, order, axis=1)
    starts_tie = np.ones(score.shape, dtype=bool)
    np.not_equal(ranked[:, 1:], ranked[:, :-1], out=starts_tie[:, 1:])
    if not starts_tie.all():
        starts = np.flatnonzero(starts_tie)
        sizes = np.diff(starts, append=starts_tie.size)
        means = np.add.reduceat(wrong.ravel(), starts) / sizes
        wrong = np.repeat(means, sizes).reshape(wrong.shape)
    return wrong


def auroc(wrong: np.ndarray) -> np.ndarray:
    """Area under the ROC curve, correct = positive; NaN with one class.

    The share of (correct, incorrect) pairs ranked correctly; ties count one half.
    """
    return ratio(*_count_pairs(1 - wrong, wrong))


def weighted_auroc(score: np.ndarray, correct: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """`auroc` of one set of answers [n] under each row of `weights` [B, n]."""
    return ratio(*_count_weighted_pairs(score, correct, weights))


def auroc_within(
    score: np.ndarray, correct: np.ndarray, weights: np.ndarray, fold: np.ndarray
) -> np.ndarray:
    """`weighted_auroc` over the pairs of answers of one `fold` [n].

    The probabilities of several fits have no common scale: a fit with a high base rate has left out
    answers with a low one, which ranks near-equal scores the wrong way round.
    """
    members = [fold == number for number in np.unique(fold)]
    counts = [
        _count_weighted_pairs(score[rows], correct[rows], weights[:, rows]) for rows in members
    ]
    n_ordered, n_pairs = np.sum(counts, axis=0)
    return ratio(n_ordered, n_pairs)


def _count_weighted_pairs(
    score: np.ndarray, correct: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`_count_pairs` of one set of answers [n] under each row of `weights` [B, n]."""
    right, wrong = np.flatnonzero(correct), np.flatnonzero(~correct)
    right = right[np.argsort(-score[right])]
    right_ranks, wrong_ranks = -score[right], -score[wrong]
    # The weight of the first k right answers, k = 0..n.
    cumulative = np.zeros((len(weights), len(right) + 1))
    np.cumsum(weights[:, right], axis=1, out=cumulative[:, 1:])
    ends = (np.searchsorted(right_ranks, wrong_ranks, side) for side in ("left", "right"))
    above = sum(cumulative[:, end] for end in ends) / 2  # a tie counts one half
    wrong = weights[:, wrong]
    return (wrong * above).sum(axis=1), cumulative[:, -1] * wrong.sum(axis=1)


def _count_pairs(right: np.ndarray, wrong: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count the (right, wrong) pairs in which the right answer stands first, and all pairs: [B].

    Both arrays are [B, k], the number of answers at each of k ranks; a pair at one rank counts one
    half.
    """
    above = np.cumsum(right, axis=1) - right / 2
    return (wrong * above).sum(axis=1), right.sum(axis=1) * wrong.sum(axis=1)


def risks(wrong: np.ndarray) -> np.ndarray:
    """The expected error rate among the k most confident answers [sets, n], k = 1..n."""
    return np.cumsum(wrong, axis=1) / np.arange(1, wrong.shape[1] + 1)


def aurc(wrong: np.ndarray) -> np.ndarray:
    """Area under the risk-coverage curve: the mean of `risks` over k (Geifman et al. 2019)."""
    return risks(wrong).mean(axis=1)


def prr(wrong: np.ndarray) -> np.ndarray:
    """Prediction-rejection ratio, correctness = quality; NaN with one class.

    The area between the accuracies among the k most confident answers and those of a random
    order, as a share of the area that a perfect order (all correct answers first) reaches: 1 is
    perfect, 0 random (Malinin and Gales 2021; lm-polygraph's ``PredictionRejectionArea``, its
    default of rejecting down to one answer, normalised; Vashurin et al. 2025). The random order and
    ties count in expectation, where lm-polygraph draws orders.
    """
    n = wrong.shape[1]
    n_wrong = np.rint(wrong.sum(axis=1))
    rank = np.arange(1, n + 1)
    # A perfect order has wrong answers only after all correct ones.
    perfect = (np.maximum(rank - (n - n_wrong)[:, None], 0) / rank).mean(axis=1)
    return ratio(n_wrong / n - aurc(wrong), n_wrong / n - perfect)


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """The quotient; NaN where the denominator is 0."""
    undefined = np.full(len(numerator), np.nan)
    return np.divide(numerator, denominator, out=undefined, where=denominator > 0)


def single_auroc(score: np.ndarray, correct: np.ndarray) -> float | None:
    """`auroc` of one set of answers [n]; None with one class."""
    if correct.all() or not correct.any():
        return None
    return float(auroc(wrong_by_rank(score[None], correct[None]))[0])


def expected_errors(score: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """The expected number of errors among the k most confident answers [n], k = 1..n."""
    return np.cumsum(wrong_by_rank(score[None], correct[None])[0])
