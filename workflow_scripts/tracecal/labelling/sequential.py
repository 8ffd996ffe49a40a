"""Thresholds tested on labels that come one after the other."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tracecal.calibration.bets import min_groups

Population = Literal["finite", "further"]
START, STEP, START_FACTOR = 0.08, 0.04, 1.5
GUESS, PRIOR = 0.4, 20.0
# The share of answers set aside for thresholds.
SHARE_FOR_THRESHOLDS = 0.1


@dataclass(frozen=True)
class SearchResult:
    """The last threshold that passed, null where none did.

    `ended` is why no further threshold passed, `tested` the last one that was tested.
    """

    threshold: float | None
    tested: float | None
    ended: Literal["passed", "failed", "labels"]


class NoMoreLabels(Exception):
    """A label is needed and cannot be had."""


def draw_test_order(
    group: np.ndarray, population: Population, most: int, rng: np.random.Generator
) -> np.ndarray:
    """The places of the answers to test, in random order.

    `group` [answers] numbers their groups from 0, of which one counts with at most `most` answers.
    """
    if population == "finite":
        return rng.permutation(len(group))
    sizes = np.bincount(group)
    order = rng.permutation(len(sizes))
    enters = rng.random(len(sizes)) * most < sizes
    by_group = np.argsort(group, kind="stable")
    one_each = by_group[np.cumsum(sizes) - sizes + rng.integers(sizes)]
    return one_each[order[enters[order]]]


def search_threshold(
    score: np.ndarray,
    wrong: Callable[[int], bool],
    error_rate: float,
    level: float,
    population: Population,
) -> SearchResult:
    """The most inclusive threshold that passes.

    `score` [answers] is in the order of `order_of_tests`; minus infinity stands for none. `wrong`
    says whether the answer at a place of it is wrong. It is called for those that a test needs, in
    the order in which it needs them, and may raise `NoMoreLabels`.
    """
    aside, start, known = 0, START, score
    if population == "further":
        aside = math.ceil(SHARE_FOR_THRESHOLDS * len(score))
        tested = max(len(score) - aside, 1)
        start, known = (
            max(START, START_FACTOR * min_groups(error_rate, level) / tested),
            score[:aside],
        )
    passed = at = None
    for at in _thresholds(known, start):
        kept = np.flatnonzero(score[aside:] >= at) + aside
        try:
            passes = _passes(kept, wrong, error_rate, level, population)
        except NoMoreLabels:
            return SearchResult(passed, at, "labels")
        if not passes:
            return SearchResult(passed, at, "failed")
        passed = at
    return SearchResult(passed, at, "passed")


def _thresholds(scores: np.ndarray, start: float) -> list[float]:
    """Quantiles of the scores, falling, that keep shares of `start`, `start` + STEP and so on to 1.

    No threshold keeps an answer without a score.
    """
    ranked = np.sort(scores)[::-1]
    # The last step may round to a little more than 1.
    shares = np.append(np.arange(start, 1.0, STEP), 1.0).clip(max=1)
    found = ranked[np.ceil(shares * len(ranked)).astype(int) - 1] if len(ranked) else ranked
    return np.unique(found[np.isfinite(found)])[::-1].tolist()


def _passes(
    kept: np.ndarray,
    wrong: Callable[[int], bool],
    rate: float,
    level: float,
    population: Population,
) -> bool:
    """Whether wealth reaches 1 / level, or it is known that the rate is kept."""
    n, errors, wealth = len(kept), 0, 1.0
    for k, answer in enumerate(kept):
        m = (n * rate - errors) / (n - k) if population == "finite" else rate
        if m >= 1:
            return True  # were all others wrong, it would be kept
        if m <= 0:
            return False  # the errors known are too many already
        guess = (PRIOR * GUESS * rate + errors) / (PRIOR + k)
        bet = min(max(m - guess, 0.0) / (m * (1 - m)), 1 / (1 - m))
        found = bool(wrong(int(answer)))
        wealth *= 1 - bet * (found - m)
        errors += found
        if wealth >= 1 / level:
            return True
    return population == "finite" and n > 0 and errors <= n * rate
