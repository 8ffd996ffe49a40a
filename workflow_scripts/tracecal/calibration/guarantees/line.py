"""The line: how many of the k highest-ranked answers may be wrong, for all k at once.

Rank labelled answers by a score that is fixed without their labels. If answers are wrong at the
target error rate throughout, the wrong ones among the first k fall to the line at some k with
probability at most `level`. No population whose kept answers are wrong more often does so more
often, at any threshold, so every threshold at or under the line is guaranteed.

1. `error_line` computes the line by an exact recursion.
2. `find_places` counts wrong answers down the ranking, at the ends of ties.
3. `labels_needed` forecasts how many labels would reach the line.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import bdtr, bdtrik

# The line starts at the rank START times the number of answers that suffice if none is wrong, or
# at a tenth of all. The level of a rank k of n is proportional to (n / k) ** TILT.
START, START_SHARE, TILT = 1.2, 0.1, 0.3
HALVINGS = 14
# More labels would cost time and hardly move a threshold.
MAX_LABELS = 5000
# `forecast` tries up to STEPS numbers of labels, each GROWTH times the one before.
GROWTH, STEPS = 1.25, 12


@dataclass(frozen=True, eq=False)
class Line:
    """How many answers may be wrong by each rank.

    Attributes
    ----------
    first : int
        The first rank with a test.
    allowed : array [n - first + 1]
        The number of wrong answers allowed at the ranks `first`, …, n; -1 where even none wrong is
        too many.
    level : float
        The level of the exact binomial test at rank n, which sets the line.
    """

    first: int
    allowed: np.ndarray
    level: float


def free_of_errors(error_rate: float, level: float) -> float:
    """The number of answers, not rounded, that suffice for a guarantee if none is wrong."""
    return math.log(level) / math.log1p(-error_rate)


@lru_cache(maxsize=256)
def error_line(n: int, error_rate: float, level: float) -> Line | None:
    """Compute the line of `n` labelled answers; None if `n` is too small for any guarantee.

    Parameters
    ----------
    n : int
        Number of ranked answers with a label, at most MAX_LABELS.
    error_rate : float
        Target error rate.
    level : float
        Largest probability with which answers that are wrong at `error_rate` reach the line.

    Examples
    --------
    >>> line = error_line(50, error_rate=0.2, level=0.1)
    >>> [line.first + int(np.argmax(line.allowed >= wrong)) for wrong in range(5)]
    [14, 23, 31, 38, 46]
    """
    enough = free_of_errors(error_rate, level)
    if n < enough:
        return None
    if n > MAX_LABELS:
        raise ValueError(f"{n} labels, more than {MAX_LABELS}")
    first = min(math.ceil(max(START * enough, START_SHARE * n)), n)
    low, high = level / 50, level
    while _crossing(_allowed(n, first, error_rate, low), first, error_rate, level) > level:
        low /= 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        allowed = _allowed(n, first, error_rate, middle)
        if _crossing(allowed, first, error_rate, level) <= level:
            low = middle
        else:
            high = middle
    allowed = _allowed(n, first, error_rate, low)
    allowed.flags.writeable = False
    return Line(first, allowed, low)


def _allowed(n: int, first: int, error_rate: float, level: float) -> np.ndarray:
    """The largest w with P(Bin(k, error_rate) <= w) <= level * (n / k) ** TILT, or -1, per rank."""
    rank = np.arange(first, n + 1)
    levels = level * (n / rank) ** TILT
    start = np.floor(np.nan_to_num(bdtrik(levels, rank, error_rate), nan=0.0)) + 1
    wrong = np.minimum(start, rank - 1)
    while (excessive := (wrong >= 0) & (bdtr(wrong, rank, error_rate) > levels)).any():
        wrong = wrong - excessive
    return wrong.astype(int)


def _crossing(allowed: np.ndarray, first: int, error_rate: float, limit: float) -> float:
    """The probability that answers wrong at `error_rate` reach the line; stops above `limit`."""
    n, width = first + len(allowed) - 1, max(int(allowed.max()), 0) + 2
    crossed = 0.0
    # The probability of each number of wrong answers, without those that reached the line.
    probability = np.zeros(width)
    probability[0] = 1.0
    for rank in range(1, n + 1):
        wrong = error_rate * probability[:-1]
        probability *= 1 - error_rate
        probability[1:] += wrong
        if rank >= first:
            end = allowed[rank - first] + 1
            crossed += probability[:end].sum()
            probability[:end] = 0.0
            if crossed > limit:
                break
    return float(crossed)


@dataclass(frozen=True, eq=False)
class Places:
    """The ends of ties in a ranking of n labelled answers, from the highest score down.

    Attributes
    ----------
    score : array [places]
        The score at each place: the threshold that keeps all answers down to it.
    kept, wrong : array [places]
        How many labelled answers rank at or above it, and how many of these are wrong.
    """

    score: np.ndarray
    kept: np.ndarray
    wrong: np.ndarray

    @property
    def n(self) -> int:
        """The number of ranked answers."""
        return int(self.kept[-1]) if len(self.kept) else 0

    def passes(self, error_rate: float, level: float) -> np.ndarray:
        """Whether each place is at or under the line, [places]."""
        line = error_line(self.n, error_rate, level)
        if line is None:
            return np.zeros(len(self.kept), dtype=bool)
        index = self.kept - line.first
        return (index >= 0) & (self.wrong <= line.allowed[np.maximum(index, 0)])

    def nearest(self, error_rate: float, level: float) -> int | None:
        """The place whose exact test comes nearest to its level; None without a line."""
        line = error_line(self.n, error_rate, level)
        if line is None:
            return None
        places = np.flatnonzero(self.kept >= line.first)
        n_kept = self.kept[places]
        excess = np.log(bdtr(self.wrong[places], n_kept, error_rate)) + TILT * np.log(n_kept)
        return int(places[np.argmin(excess)])


def find_places(score: np.ndarray, wrong: np.ndarray) -> Places:
    """Rank answers with `score` [n] and `wrong` [n]; those without a finite score are not ranked.

    Infinite scores are ranked; NaN is not.

    >>> find_places(np.array([0.9, 0.5, 0.9, np.nan]), np.array([0, 1, 1, 0], dtype=bool)).kept
    array([2, 3])
    """
    ranked = ~np.isnan(score)
    score, wrong = score[ranked], wrong[ranked]
    order = np.argsort(-score, kind="stable")
    score, n_wrong = score[order], np.cumsum(wrong[order])
    ends = np.flatnonzero(np.append(score[1:] != score[:-1], True)) if len(score) else order
    return Places(score[ends], ends + 1, n_wrong[ends])


def labels_needed(places: Places, error_rate: float, level: float) -> int | None:
    """Forecast how many labels reach the line if the nearest place keeps its share of errors.

    None without a line, or if too many are wrong for any of the numbers of `forecast`.
    """
    nearest = places.nearest(error_rate, level)
    if nearest is None or places.wrong[nearest] >= error_rate * places.kept[nearest]:
        return None
    coverage, wrong = places.kept[nearest] / places.n, places.wrong[nearest] / places.n

    def reaches(n: int) -> bool:
        line = error_line(n, error_rate, level)
        return line is not None and bool(
            math.ceil(wrong * n) <= line.allowed[max(math.floor(coverage * n) - line.first, 0)]
        )

    return forecast(places.n, reaches)


def forecast(n: int, is_enough: Callable[[int], bool]) -> int | None:
    """Search the smallest number that is enough among `n` times GROWTH, GROWTH², …

    None if 14.6 times `n` (GROWTH to the power of STEPS), or MAX_LABELS, is not enough. By
    bisection, as if whatever is enough stayed so with more.

    >>> forecast(100, lambda n: n > 200)
    245
    """
    numbers = [math.ceil(n * GROWTH**step) for step in range(1, STEPS + 1)]
    numbers = [number for number in numbers if number <= MAX_LABELS]
    index = bisect_left(numbers, True, key=is_enough)
    return numbers[index] if index < len(numbers) else None
