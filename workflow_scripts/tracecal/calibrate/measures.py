"""Metrics of many sets of answers at once: arrays are [B, n], one set of n >= 1 answers per row.

`probability` lies in [0, 1], `correct` is bool, `score` any real number, larger = more confident.
Each metric is an array [B] with NaN where it is undefined.
"""

import numpy as np


def brier(probability: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Mean squared error of the probability (Brier 1950)."""
    return ((probability - correct) ** 2).mean(axis=1)


def nll(probability: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Mean negative log-likelihood in nats; probabilities are clipped one epsilon off 0 and 1."""
    epsilon = np.finfo(probability.dtype).eps
    likelihood = np.where(correct, probability, 1 - probability)
    return -np.log(likelihood.clip(epsilon, 1 - epsilon)).mean(axis=1)


def ece(probability: np.ndarray, correct: np.ndarray, bins: int) -> np.ndarray:
    """Expected calibration error over `bins` equal-width bins (Naeini et al. 2015)."""
    sets, n = probability.shape
    index = bin_index(probability, bins) + bins * np.arange(sets)[:, None]
    gaps = np.bincount(
        index.ravel(), weights=(correct - probability).ravel(), minlength=sets * bins
    )
    return np.abs(gaps.reshape(sets, bins)).sum(axis=1) / n


def bin_index(probability: np.ndarray, bins: int) -> np.ndarray:
    """The equal-width bin of each probability: k holds [k/bins, (k+1)/bins), the last also 1."""
    return np.minimum((probability * bins).astype(int), bins - 1)


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
    above = np.cumsum(wrong, axis=1) - wrong / 2
    misplaced = ((1 - wrong) * above).sum(axis=1)
    missed = _missed(wrong)
    return 1 - ratio(misplaced, missed * (wrong.shape[1] - missed))


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
