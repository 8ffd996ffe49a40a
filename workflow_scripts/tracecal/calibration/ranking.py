"""How well confidence ranks right answers before wrong ones."""

import numpy as np


def wrong_by_rank(score: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Probability that the k-th most confident answer is wrong, k = 1..n, over the orders of ties:
    0 or 1, or the share of wrong answers among those with equal scores. Input of ranking metrics.
    """
    order = np.argsort(-score, axis=1)
    wrong = np.take_along_axis(~correct, order, axis=1).astype(float)
    ranked = np.take_along_axis(score, order, axis=1)
    first = np.ones(score.shape, dtype=bool)  # of the answers with equal scores
    np.not_equal(ranked[:, 1:], ranked[:, :-1], out=first[:, 1:])
    if not first.all():
        starts = np.flatnonzero(first)
        tied = np.diff(starts, append=first.size)
        wrong = np.repeat(np.add.reduceat(wrong.ravel(), starts) / tied, tied).reshape(wrong.shape)
    return wrong


def auroc(wrong: np.ndarray) -> np.ndarray:
    """Area under the ROC curve of `wrong_by_rank`, correct = positive; NaN with one class.

    Share of (correct, incorrect) pairs ranked correctly; ties count one half.
    """
    return ratio(*_pairs(1 - wrong, wrong))


def weighted_auroc(score: np.ndarray, correct: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """`auroc` of one set of answers, [n], under each row of `weights` [B, n]."""
    return ratio(*_weighted_pairs(score, correct, weights))


def auroc_within(
    score: np.ndarray, correct: np.ndarray, weights: np.ndarray, fold: np.ndarray
) -> np.ndarray:
    """`weighted_auroc` over the pairs of answers of one `fold`, [n].

    The probabilities of several fits have no common scale: where a fit's base rate is high that of
    the answers that it left out is low, which ranks near-equal scores the wrong way round.
    """
    own = [fold == one for one in np.unique(fold)]
    pairs = [_weighted_pairs(score[one], correct[one], weights[:, one]) for one in own]
    ahead, every = np.sum(pairs, axis=0)
    return ratio(ahead, every)


def _weighted_pairs(
    score: np.ndarray, correct: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`_pairs` of one set of answers, [n], under each row of `weights` [B, n]."""
    right, wrong = np.flatnonzero(correct), np.flatnonzero(~correct)
    right = right[np.argsort(-score[right])]
    ranked, others = -score[right], -score[wrong]
    # How many right answers, by weight, are among the first k, k = 0..n.
    first = np.zeros((len(weights), len(right) + 1))
    np.cumsum(weights[:, right], axis=1, out=first[:, 1:])
    ends = (np.searchsorted(ranked, others, side) for side in ("left", "right"))
    above = sum(first[:, end] for end in ends) / 2  # a tie counts one half
    wrong = weights[:, wrong]
    return (wrong * above).sum(axis=1), first[:, -1] * wrong.sum(axis=1)


def _pairs(right: np.ndarray, wrong: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In how many (right, wrong) pairs the right answer stands first, and how many there are, [B].

    Both are [B, k], how many there are at each of k places; pairs at one place count one half.
    """
    above = np.cumsum(right, axis=1) - right / 2
    return (wrong * above).sum(axis=1), right.sum(axis=1) * wrong.sum(axis=1)


def risks(wrong: np.ndarray) -> np.ndarray:
    """The expected error rate among the k most confident answers [B, n], k = 1..n."""
    return np.cumsum(wrong, axis=1) / np.arange(1, wrong.shape[1] + 1)


def aurc(wrong: np.ndarray) -> np.ndarray:
    """Area under the risk-coverage curve of `wrong_by_rank`: the mean over k of the error rate
    among the k most confident answers (Geifman et al. 2019), ties in expectation.
    """
    return risks(wrong).mean(axis=1)


def prr(wrong: np.ndarray) -> np.ndarray:
    """Prediction-rejection ratio of `wrong_by_rank`, correctness = quality; NaN with one class.

    The area between the accuracies among the k most confident answers and those of a random
    order, as a share of the area that a perfect order (all correct answers first) reaches: 1 is
    perfect, 0 random (Malinin and Gales 2021; lm-polygraph's `PredictionRejectionArea`, its
    default of rejecting down to one answer, normalised; Vashurin et al. 2025). The random order and
    ties count in expectation, where lm-polygraph draws orders.
    """
    n = wrong.shape[1]
    missed = _missed(wrong)
    rank = np.arange(1, n + 1)
    # A perfect order has wrong answers only after all correct ones.
    perfect = (np.maximum(rank - (n - missed)[:, None], 0) / rank).mean(axis=1)
    return ratio(missed / n - aurc(wrong), missed / n - perfect)


def _missed(wrong: np.ndarray) -> np.ndarray:
    """The number of wrong answers in each set."""
    return np.rint(wrong.sum(axis=1))


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """The quotient; NaN where the denominator is 0."""
    undefined = np.full(len(numerator), np.nan)
    return np.divide(numerator, denominator, out=undefined, where=denominator > 0)


def single_auroc(score: np.ndarray, correct: np.ndarray) -> float | None:
    """`auroc` of one set of answers, [n]; None where a class is missing."""
    if correct.all() or not correct.any():
        return None
    return float(auroc(wrong_by_rank(score[None], correct[None]))[0])


def expected_errors(score: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """The number of errors among the k most confident answers [n], k = 1..n.

    Answers with equal scores count in expectation over their orders.
    """
    return np.cumsum(wrong_by_rank(score[None], correct[None])[0])
