"""Proper scores of probabilities: the Brier score and the negative log-likelihood.

Arrays are [sets, answers]: a row per estimator and split.
"""

import numpy as np

from tracecal.calibration.ranking import ratio


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
