"""Sequential tests of an error rate, which ask for labels one by one and stop when they decide.

1. `draw_test_order` orders the answers at random.
2. `search_threshold` tests falling thresholds and asks for the labels that each test needs.
3. The result holds the last threshold that passed: at most the target error rate of the answers
   that it keeps are wrong, with the stated confidence.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tracecal.guarantees.error_rate import min_groups

# The answers that a guarantee covers: the file's, or further ones like them.
PopulationKind = Literal["finite", "further"]
# The shares of answers that the thresholds keep: START_SHARE, then STEP more each. Of further
# answers the first threshold keeps START_FACTOR times the groups that suffice without an error.
START_SHARE, STEP, START_FACTOR = 0.08, 0.04, 1.5
# The bets start from an error rate of PRIOR_RATE times the target, weighted as PRIOR_LABELS labels.
PRIOR_RATE, PRIOR_LABELS = 0.4, 20.0
# The share of further answers that choose the thresholds and enter no test.
THRESHOLD_SHARE = 0.1


@dataclass(frozen=True)
class SearchResult:
    """The last `threshold` that passed, the last that was `tested`, and why the search `ended`.

    All thresholds passed, one failed, or labels ran out.
    """

    threshold: float | None
    tested: float | None
    ended: Literal["passed", "failed", "labels"]


class NoMoreLabels(Exception):
    """A test needs a label that is not available."""


def draw_test_order(group: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the indices of the answers to test in random order, one of each group.

    `group` [answers] numbers the groups from 0.
    """
    sizes = np.bincount(group)
    order = rng.permutation(len(sizes))
    by_group = np.argsort(group, kind="stable")
    member = by_group[np.cumsum(sizes) - sizes + rng.integers(sizes)]
    return member[order]


def search_threshold(
    score: np.ndarray,
    is_wrong: Callable[[int], bool],
    error_rate: float,
    level: float,
    population: PopulationKind,
) -> SearchResult:
    """Find the threshold that keeps most answers among those that pass a test at `level`.

    `score` [answers] is in the order of `draw_test_order`, minus infinity for a missing one.
    `is_wrong` says whether the answer at an index of `score` is wrong. It is called only for labels
    that a test needs, in the order of need, and may raise `NoMoreLabels`.

    >>> score = np.arange(100) / 100
    >>> search_threshold(score, lambda index: score[index] < 0.5, 0.1, 0.1, "finite").ended
    'failed'
    """
    n_aside, start_share, scores = 0, START_SHARE, score
    if population == "further":
        n_aside = math.ceil(THRESHOLD_SHARE * len(score))
        n_tested = max(len(score) - n_aside, 1)
        start_share = max(START_SHARE, START_FACTOR * min_groups(error_rate, level) / n_tested)
        scores = score[:n_aside]
    passed = threshold = None
    for threshold in falling_thresholds(scores, start_share):
        kept_indices = np.flatnonzero(score[n_aside:] >= threshold) + n_aside
        try:
            passes = passes_test(kept_indices, is_wrong, error_rate, level, population)
        except NoMoreLabels:
            return SearchResult(passed, threshold, "labels")
        if not passes:
            return SearchResult(passed, threshold, "failed")
        passed = threshold
    return SearchResult(passed, threshold, "passed")


def falling_thresholds(scores: np.ndarray, start_share: float) -> list[float]:
    """Falling quantiles of the scores, which keep `start_share`, STEP more, ... and at last all.

    No threshold keeps an answer without a score (NaN or -inf).
    """
    ranked = np.sort(np.where(np.isnan(scores), -np.inf, scores))[::-1]
    # Rounding may lift the last step above 1.
    shares = np.append(np.arange(start_share, 1.0, STEP), 1.0).clip(max=1)
    quantiles = ranked[np.ceil(shares * len(ranked)).astype(int) - 1] if len(ranked) else ranked
    return np.unique(quantiles[np.isfinite(quantiles)])[::-1].tolist()


def passes_test(
    kept_indices: np.ndarray,
    is_wrong: Callable[[int], bool],
    error_rate: float,
    level: float,
    population: PopulationKind,
) -> bool:
    """Test whether at most `error_rate` of the kept answers are wrong; indices in test order.

    A bet against a higher error rate is placed on each label. The test passes when the wealth
    reaches 1 / `level`, or when the labels of a finite population settle the question.
    """
    n, errors, wealth = len(kept_indices), 0, 1.0
    for n_labels, index in enumerate(kept_indices):
        null_rate = error_rate
        if population == "finite":
            null_rate = (n * error_rate - errors) / (n - n_labels)
        if null_rate >= 1:
            return True  # even if all remaining answers are wrong
        if null_rate <= 0:
            return False  # the labels show too many errors
        prior_errors = PRIOR_LABELS * PRIOR_RATE * error_rate
        expected_rate = (prior_errors + errors) / (PRIOR_LABELS + n_labels)
        growth_bet = max(null_rate - expected_rate, 0.0) / (null_rate * (1 - null_rate))
        bet = min(growth_bet, 1 / (1 - null_rate))
        wrong = bool(is_wrong(int(index)))
        wealth *= 1 - bet * (wrong - null_rate)
        errors += wrong
        if wealth >= 1 / level:
            return True
    return population == "finite" and n > 0 and errors <= n * error_rate
