"""The ROC curve of "this is an error" by falling confidence, and metrics of it."""

from collections.abc import Callable

import numpy as np

MAX_RATE = 0.10  # the false-positive rate at which the partial area ends
# A function of the false- and true-positive rates along a curve.
CurveMetric = Callable[[np.ndarray, np.ndarray], float]


def roc_curve(errors: np.ndarray, correct: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False- and true-positive rates as the threshold on the confidence rises.

    The arguments are confidences of wrong and of correct answers.

    >>> false_rates, true_rates = roc_curve(np.array([0.1, 0.4]), np.array([0.3, 0.9]))
    >>> false_rates.tolist(), true_rates.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    thresholds = np.unique(np.concatenate([errors, correct]))
    false_rates, true_rates = (
        np.append(0, np.searchsorted(np.sort(group), thresholds, side="right") / len(group))
        for group in (correct, errors)
    )
    return false_rates, true_rates


def area(false_rates: np.ndarray, true_rates: np.ndarray) -> float:
    """Area under the curve."""
    return float(np.trapezoid(true_rates, false_rates))


def partial_area(false_rates: np.ndarray, true_rates: np.ndarray) -> float:
    """Area at false-positive rates below 10 %, standardised so that chance is 0.5 (McClish 1989).

    As scikit-learn's `roc_auc_score(max_fpr=0.1)`, from an existing curve.
    """
    inside = false_rates <= MAX_RATE
    x = np.append(false_rates[inside], MAX_RATE)
    y = np.append(true_rates[inside], np.interp(MAX_RATE, false_rates, true_rates))
    chance = MAX_RATE**2 / 2
    return float(0.5 * (1 + (np.trapezoid(y, x) - chance) / (MAX_RATE - chance)))


def true_rate_at(rate: float) -> CurveMetric:
    """The metric: the largest true-positive rate at a false-positive rate of at most `rate`.

    It is not interpolated: some threshold on the confidence reaches it.
    """
    return lambda false_rates, true_rates: float(true_rates[false_rates <= rate].max())
