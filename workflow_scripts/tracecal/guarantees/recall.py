"""Thresholds on a ranking score that keep at least a share of the right answers."""

import numpy as np
import scipy

from tracecal.guarantees.error_rate import lowered, min_groups, rounded


def recall_threshold(
    score: np.ndarray, correct: np.ndarray, recall: float, level: float
) -> float | None:
    """The highest threshold that keeps at least `recall` of the right answers.

    It is the (k + 1)-th smallest score of the right answers, with the largest k for which
    P(Bin(right answers, 1 - recall) <= k) <= level.

    Parameters
    ----------
    score : array [n]
        Ranking scores; a right answer without one (NaN) counts as not kept.
    correct : array [n] of bool
        Whether each answer is right.
    recall : float
        Share of the right answers to keep.
    level : float
        Significance level.

    Returns
    -------
    float or None
        None if there are too few right answers, or too many of them without a score.

    Examples
    --------
    >>> round(recall_threshold(np.arange(100.0), np.ones(100, dtype=bool), recall=0.9, level=0.1))
    5
    """
    score = rounded(score)
    right = np.sort(np.where(np.isnan(score), -np.inf, score)[correct])
    dropped = np.arange(len(right))
    n_dropped = int((scipy.special.bdtr(dropped, len(right), 1 - recall) <= level).sum())
    if not n_dropped or right[n_dropped - 1] == -np.inf:
        return None
    return float(lowered(right[n_dropped - 1]))


def right_answers_needed(recall: float, level: float) -> int:
    """How many right labelled answers a guaranteed recall needs at least."""
    return min_groups(1 - recall, level)
