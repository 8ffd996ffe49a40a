"""Metrics of probabilities: proper scores and the calibration error.

1. `brier` and `nll` are proper scores: exact probabilities have the best mean.
2. `ece` is the calibration error in bins, `ece_debiased` the same without its bias.

Arrays are [sets, answers]: a row per estimator and split.
"""

import numpy as np

from tracecal.statistics.ranking_metrics import ratio


def brier(probability: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Mean squared error of the probability (Brier 1950)."""
    return ((probability - correct) ** 2).mean(axis=1)


def weighted_brier(probability: np.ndarray, correct: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """`brier` of one set of answers [n] under each row of `weights` [B, n]."""
    return ratio(weights @ (probability - correct) ** 2, weights.sum(axis=1))


def nll(probability: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Mean negative log-likelihood in nats; probabilities are clipped one epsilon off 0 and 1."""
    epsilon = np.finfo(probability.dtype).eps
    likelihood = np.where(correct, probability, 1 - probability)
    return -np.log(likelihood.clip(epsilon, 1 - epsilon)).mean(axis=1)


def ece(probability: np.ndarray, correct: np.ndarray, bins: int) -> np.ndarray:
    """Expected calibration error over `bins` equal-width bins (Naeini et al. 2015)."""
    n_sets, n = probability.shape
    index = bin_index(probability, bins) + bins * np.arange(n_sets)[:, None]
    gaps = np.bincount(
        index.ravel(), weights=(correct - probability).ravel(), minlength=n_sets * bins
    )
    return np.abs(gaps.reshape(n_sets, bins)).sum(axis=1) / n


def ece_debiased(probability: np.ndarray, correct: np.ndarray, bins: int) -> np.ndarray:
    """`ece` less the mean ECE of exact probabilities on the same answers.

    Chance makes the ECE of few answers in a bin too large. This one is 0 on average where the
    probabilities are exact, and too small by at most that chance where they are not. A bin of m
    answers counts as binomial with its mean probability p, whose mean absolute deviation is
    2 k (1 - p) P(Bin(m, p) = k) with k = floor(m p) + 1 (de Moivre; Diaconis and Zabell 1991).
    """
    from scipy.special import betaln, xlog1py, xlogy  # slow to load, and most users need only `ece`

    n_sets, n = probability.shape
    index = (bin_index(probability, bins) + bins * np.arange(n_sets)[:, None]).ravel()
    size = np.bincount(index, minlength=n_sets * bins)
    total = np.bincount(index, weights=probability.ravel(), minlength=n_sets * bins)
    p = np.clip(total / np.maximum(size, 1), 0.0, 1.0)
    k = np.minimum(np.floor(size * p) + 1, size)
    rest = size - k
    log_choices = -np.log(size + 1) - betaln(rest + 1, k + 1)
    deviation = 2 * k * (1 - p) * np.exp(log_choices + xlogy(k, p) + xlog1py(rest, -p))
    return ece(probability, correct, bins) - deviation.reshape(n_sets, bins).sum(axis=1) / n


def bin_index(probability: np.ndarray, bins: int) -> np.ndarray:
    """The equal-width bin of each probability: k holds [k/bins, (k+1)/bins), the last also 1."""
    return np.minimum((probability * bins).astype(int), bins - 1)
