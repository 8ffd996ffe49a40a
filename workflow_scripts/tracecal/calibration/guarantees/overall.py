"""Thresholds on a ranking score that bound the errors among all answers, if people mend the rest.

People check the answers below a threshold and mend what is wrong. `overall_threshold` gives the
lowest one above which at most a share of all answers is wrong, `confidence_at_once` the
confidence with which several rates hold together.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy

from tracecal.calibration.guarantees.error_rate import raised, rounded
from tracecal.calibration.guarantees.line import allowed_errors, min_groups

NOT_OF_PARTS = "--overall-error is for whole answers: nobody has measured it for parts."
KEEP_ALL = 0.0  # a threshold that every score reaches
# The ranking does not help where the share of wrong ones among the kept exceeds this times all's.
LOTTERY = 0.8
NEGLIGIBLE = 1e-15  # probability of a number of errors
DEVIATIONS = 8.5  # from its mean, beyond which a number of errors is negligible


def overall_threshold(
    score: np.ndarray, wrong: np.ndarray, error_rate: float, level: float
) -> float | None:
    """The lowest threshold above which at most `error_rate` of all answers is wrong.

    It lies above the (k + 1)-th highest score of the wrong answers, where k errors are allowed; all
    that tie with that answer are below it.

    Parameters
    ----------
    score : array [n]
        Ranking scores from 0 to 1; an answer without one (NaN) is never kept, and counts.
    wrong : array [n] of bool
        Whether each answer is wrong.
    error_rate : float
        Largest share of all answers that are kept and wrong.
    level : float
        Significance level.

    Returns
    -------
    float or None
        None if there are too few answers.

    Examples
    --------
    >>> score, wrong = np.arange(100) / 100, np.arange(100) % 10 == 5
    >>> round(overall_threshold(score, wrong, error_rate=0.1, level=0.1), 2)
    0.45
    """
    allowed = allowed_errors(len(score), error_rate, level)
    if allowed < 0:
        return None
    score = rounded(score)
    highest = -np.sort(-score[wrong & ~np.isnan(score)])
    return float(raised(highest[allowed])) if len(highest) > allowed else KEEP_ALL


def overall_rows(
    score: np.ndarray, wrong: np.ndarray, error_rates: Sequence[float], level: float
) -> list[dict[str, Any]]:
    """The JSON values of the `overall_threshold` of each rate, smallest rate first."""
    n, rows = len(score), []
    for rate in sorted(error_rates):
        few = f"needs at least {min_groups(rate, level)} labels that test; there are {n}"
        allowed = allowed_errors(n, rate, level)
        threshold = overall_threshold(score, wrong, rate, level)
        is_kept = score >= (np.inf if threshold is None else threshold)
        some = is_kept.any() and not is_kept.all()
        rows.append(
            {
                "error_rate": rate,
                "threshold": threshold,
                "n": n,
                "allowed": None if threshold is None else allowed,
                "is_lottery": bool(some and wrong[is_kept].mean() > LOTTERY * wrong.mean()),
                "reason": few if threshold is None else None,
            }
        )
    return rows


def confidence_at_once(n: int, error_rates: Sequence[float], level: float) -> float:
    """The confidence that the thresholds of all rates hold at once, with `n` answers.

    The thresholds of rising rates nest, so that the errors above each are those above the one
    before and a binomial number of further ones.

    >>> round(confidence_at_once(100, [0.05, 0.1, 0.2], level=0.1), 4)
    0.8697
    """
    probability, before = np.eye(1, n + 1)[0], 0.0
    for rate in sorted(error_rates):
        further = (rate - before) / (1 - before)
        reach = DEVIATIONS * (math.sqrt(n * further * (1 - further)) + DEVIATIONS)
        counts = np.flatnonzero(probability > NEGLIGIBLE)
        first = max(0, math.floor((n - counts[-1]) * further - reach))
        numbers = np.arange(first, min(n, math.ceil((n - counts[0]) * further + reach)) + 1)
        remaining = n - counts[:, None]
        below = scipy.special.bdtr(np.minimum(numbers, remaining), remaining, further)
        mass = np.diff(below, prepend=0.0)
        following = np.zeros(n + len(numbers) + first)
        for count, row in zip(counts, mass, strict=True):
            following[count + numbers] += probability[count] * row
        following[: allowed_errors(n, rate, level) + 1] = 0.0
        probability, before = following[: n + 1], rate
    return float(probability.sum())
