"""The line: how many of the k highest-ranked answers may be wrong, for all ranks k at once.

Rank labelled answers, drawn independently, by a score that is fixed without their labels. A rank
passes if at most `allowed[k]` of the first k answers are wrong. If every answer is wrong with the
target error rate, some rank passes with probability at most `level`. Where the answers above a
threshold are wrong more often, that threshold passes no more often (docs/background/guarantees.md;
`python -m simulations.lines` tries it). So, with probability 1 - `level`, no threshold that
passes keeps answers with more than the target error rate.

1. `find_places` counts wrong answers down the ranking; the module error_rate calls it.
2. `Places.passes` compares the counts with `error_line`, which an exact recursion computes.

Ranks count from 1.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

# The first rank with a test is START times the number of answers that suffice if none is wrong, or
# a tenth of all answers if that is more, and at most n. The level of a rank k of n is proportional
# to (n / k) ** TILT: small k get more, as the share kept at strict rates is small. The values keep
# most on average in simulations.
START, START_SHARE, TILT = 1.2, 0.1, 0.3
HALVINGS = 14  # steps of the bisection for the level
# With more labels the recursion is slow, and thresholds hardly move: error_rate draws these.
MAX_LABELS = 5000


@dataclass(frozen=True, eq=False)
class Line:
    """How many of the answers down to each rank may be wrong.

    Attributes
    ----------
    first : int
        The first rank with a test.
    allowed : array [n - first + 1]
        The number of wrong answers allowed at the ranks `first`, …, n; -1 where a rank cannot pass
        even with none wrong.
    level : float
        The level of the exact binomial test at rank n; those of other ranks follow by TILT.
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
        Largest probability that some rank passes where answers are wrong at `error_rate`: 1 less
        the confidence.

    Raises
    ------
    ValueError
        For more than MAX_LABELS labels.

    Examples
    --------
    The first ranks that allow 0, 1, 2, 3 and 4 wrong answers:

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
    rank = np.arange(first, n + 1)
    # Bisect between a level at which ranks pass rarely enough, and the level of a single test.
    low, high = level / 50, level
    largest = _allowed(rank, error_rate, high, n)
    while _crossing(least := _allowed(rank, error_rate, low, n), first, error_rate, level) > level:
        low /= 2
    for _ in range(HALVINGS):
        middle, allowed = (low + high) / 2, least.copy()
        differs = least < largest
        allowed[differs] = _allowed(rank[differs], error_rate, middle, n)
        if _crossing(allowed, first, error_rate, level) <= level:
            low, least = middle, allowed
        else:
            high, largest = middle, allowed
    least.flags.writeable = False
    return Line(first, least, low)


def _allowed(rank: np.ndarray, error_rate: float, level: float, n: int) -> np.ndarray:
    """The largest w with P(Bin(k, error_rate) <= w) <= level * (n / k) ** TILT, or -1, per rank."""
    levels = level * (n / rank) ** TILT
    # Begin above the limit, by the inverse (NaN where no number is allowed), and step down to it.
    above = np.floor(np.nan_to_num(scipy.special.bdtrik(levels, rank, error_rate), nan=0.0)) + 1
    limit = np.minimum(above, rank - 1)
    bdtr = scipy.special.bdtr
    while (excessive := (limit >= 0) & (bdtr(limit, rank, error_rate) > levels)).any():
        limit = limit - excessive
    return limit.astype(int)


def _crossing(allowed: np.ndarray, first: int, error_rate: float, limit: float) -> float:
    """The probability that a rank passes where answers are wrong at `error_rate`.

    The sum ends once it is above `limit`; it is then only a lower bound.
    """
    crossed, passed = 0.0, 0
    # The probability of each number of wrong answers with no rank passed yet. Numbers above the
    # largest limit never pass, and are dropped.
    probability = np.zeros(max(int(allowed.max()), 0) + 2)
    probability[0] = 1.0
    fewer, more = probability[:-1], probability[1:]
    for n_allowed in [-1] * (first - 1) + allowed.tolist():
        one_more = error_rate * fewer
        probability *= 1 - error_rate
        more += one_more
        if n_allowed >= passed:  # fewer errors have passed before
            passed = n_allowed + 1
            crossed += probability[:passed].sum()
            probability[:passed] = 0.0
            if crossed > limit:
                break
    return float(crossed)


@dataclass(frozen=True, eq=False)
class Places:
    """The possible thresholds of a ranking of n labelled answers: where ties end, highest first.

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
        """Whether at most as many answers are wrong as the line allows, [places]."""
        line = error_line(self.n, error_rate, level)
        if line is None:
            return np.zeros(len(self.kept), dtype=bool)
        index = self.kept - line.first
        return (index >= 0) & (self.wrong <= line.allowed[np.maximum(index, 0)])

    def nearest(self, error_rate: float, level: float) -> int | None:
        """The place with the smallest p-value in proportion to its level; None without a line."""
        line = error_line(self.n, error_rate, level)
        if line is None:
            return None
        places = np.flatnonzero(self.kept >= line.first)
        n_kept = self.kept[places]
        with np.errstate(divide="ignore"):  # a p-value of 0 is the smallest
            log_p = np.log(scipy.special.bdtr(self.wrong[places], n_kept, error_rate))
        return int(places[np.argmin(log_p + TILT * np.log(n_kept))])

    def risk_coverage(self) -> list[tuple[float, float]]:
        """The share of answers kept and the error rate among them, at up to ten thresholds.

        The thresholds keep a tenth of the answers, two tenths, and so on; tied ones are merged.
        """
        tenths = np.ceil(self.n * np.arange(1, 11) / 10)
        chosen = np.unique(np.searchsorted(self.kept, tenths)) if self.n else []
        n_kept, n_wrong = self.kept[chosen], self.wrong[chosen]
        shares = (n_kept / self.n).round(4).tolist(), (n_wrong / n_kept).round(4).tolist()
        return [*zip(*shares, strict=True)]


def find_places(score: np.ndarray, wrong: np.ndarray) -> Places:
    """Rank answers by `score` [n], highest first; `wrong` [n] says which are wrong.

    Answers whose score is NaN are left out; infinite scores are ranked.

    >>> find_places(np.array([0.9, 0.5, 0.9, np.nan]), np.array([0, 1, 1, 0], dtype=bool)).kept
    array([2, 3])
    """
    ranked = ~np.isnan(score)
    score, wrong = score[ranked], wrong[ranked]
    order = np.argsort(-score, kind="stable")
    score, n_wrong = score[order], np.cumsum(wrong[order])
    ends = np.flatnonzero(np.append(score[1:] != score[:-1], True)) if len(score) else order
    return Places(score[ends], ends + 1, n_wrong[ends])


def significance_level(confidence: float) -> float:
    """The significance level of a test at a confidence."""
    return round(1 - confidence, 12)  # 1 - 0.9 is a little less than 0.1
