"""Thresholds on a ranking score that keep at least a share of the right answers.

`recall_threshold` (single answers) and `recall_threshold_by_groups` give the highest threshold that
is guaranteed to keep that share. `keep_both` composes it with an error rate, each tested at half
the level.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import bdtr

from tracecal.calibration.bets import betting_test, min_groups
from tracecal.calibration.guarantees.error_rate import (
    GroupedScores,
    lacks_unlabelled,
    lowered,
    quantiles,
)


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
    score = GroupedScores.of_single(score).rounded().score
    right = np.sort(np.where(np.isnan(score), -np.inf, score)[correct])
    dropped = np.arange(len(right))
    n_dropped = int((bdtr(dropped, len(right), 1 - recall) <= level).sum())
    if not n_dropped or right[n_dropped - 1] == -np.inf:
        return None
    return float(lowered(right[n_dropped - 1]))


def right_answers_needed(recall: float, level: float) -> int:
    """How many right labelled answers a guaranteed recall needs at least."""
    return min_groups(1 - recall, level)


def recall_threshold_by_groups(
    labelled: GroupedScores,
    correct: np.ndarray,
    unlabelled: GroupedScores,
    recall: float,
    level: float,
    largest_group: int,
) -> float | None:
    """The highest threshold that keeps at least `recall` of the right answers of groups.

    Bets on whole groups test quantiles of the unlabelled scores from the lowest up; the first that
    fails ends the search. The parameters are those of `recall_threshold` and `find_thresholds`;
    groups of more than `largest_group` answers are not counted.
    """
    testable = labelled.size <= largest_group
    labelled, unlabelled = labelled.rounded(), unlabelled.rounded()
    labelled, right = labelled.select(testable), np.asarray(correct, dtype=bool)[testable, None]
    unlabelled = unlabelled.select(unlabelled.size <= largest_group)
    if not labelled.n_groups or lacks_unlabelled(unlabelled):
        return None
    rising = quantiles(unlabelled.score)[::-1]
    is_dropped = ~labelled.is_kept(rising)
    excess = labelled.group_totals(right * (is_dropped - (1 - recall)), largest_group)
    passed = betting_test(excess, np.zeros((0, len(rising))), 1 - recall, level)
    n_passed = int(np.cumprod(passed).sum())
    return float(lowered(rising[n_passed - 1])) if n_passed else None


def keep_both(guaranteed: Sequence[float], recall: float | None) -> float | None:
    """The threshold that holds an error rate and a recall; None where they exclude each other.

    Both hold together with confidence 1 - level if each was tested at level / 2. Every threshold of
    `guaranteed` holds the error rate, at once, and every threshold up to `recall` the recall: the
    highest of these keeps the fewest wrong answers.

    >>> keep_both([0.9, 0.7, 0.4], recall=0.8), keep_both([0.9], recall=0.8)
    (0.7, None)
    """
    if recall is None:
        return None
    return max((threshold for threshold in guaranteed if threshold <= recall), default=None)
