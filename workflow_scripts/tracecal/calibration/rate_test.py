"""Tests of new labels against an error rate that was guaranteed.

1. `kept_groups` counts the labelled answers of each group that are kept, and the wrong ones.
2. `KeptGroups.contradicts` tests that the error rate is higher than guaranteed, and `rules_out`
   that it is lower than a rate that must not pass.
3. `enough_groups` says how many would decide.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, bdtrc

from tracecal.calibration.bets import betting_test
from tracecal.io.randomness import seeded

# Enough labels decide in POWER of the draws. Numbers are tried up to MOST, each a share STEP more.
POWER, MOST, STEP = 0.8, 20_000, 0.05
DRAWS = 200  # draws of groups, since their tests have no formula


@dataclass(frozen=True)
class KeptGroups:
    """The labelled answers that are kept, by group.

    Attributes
    ----------
    kept, wrong : array [groups]
        How many there are, and how many are wrong, as shares of the largest group.
    is_single : bool
        Whether each group is one answer, so that errors are binomial.
    """

    kept: np.ndarray
    wrong: np.ndarray
    is_single: bool

    def contradicts(self, error_rate: float, level: float) -> bool:
        """Whether the error rate is above `error_rate`, wrongly with at most `level` probability.

        >>> KeptGroups(np.ones(20), np.arange(20) < 8, True).contradicts(0.2, 0.05)
        True
        """
        if self.is_single:
            n, n_wrong = len(self.kept), int(self.wrong.sum())
            return n_wrong > 0 and bool(bdtrc(n_wrong - 1, n, error_rate) <= level)
        deficit = (error_rate * self.kept - self.wrong)[:, None]
        return bool(_bets(deficit, 1 - error_rate, level)[0])

    def rules_out(self, error_rate: float, level: float) -> bool:
        """Whether the error rate is below `error_rate`, wrongly with at most `level` probability.

        >>> KeptGroups(np.ones(20), np.arange(20) < 1, True).rules_out(0.3, 0.05)
        True
        """
        if self.is_single:
            n, n_wrong = len(self.kept), int(self.wrong.sum())
            return n > 0 and bool(bdtr(n_wrong, n, error_rate) <= level)
        excess = (self.wrong - error_rate * self.kept)[:, None]
        return bool(_bets(excess, error_rate, level)[0])


def kept_groups(group: np.ndarray, wrong: np.ndarray) -> KeptGroups:
    """Count kept answers [n] by group, in an order that says nothing of their labels.

    All answers have one weight, with which the largest group counts as 1.
    """
    _, index = np.unique(group, return_inverse=True)
    n_kept = np.bincount(index)
    n_wrong = np.bincount(index, weights=wrong)
    order = seeded("order of groups", len(n_kept)).permutation(len(n_kept))
    largest = n_kept.max(initial=1)
    return KeptGroups(n_kept[order] / largest, n_wrong[order] / largest, bool(largest == 1))


def _bets(excess: np.ndarray, error_rate: float, level: float) -> np.ndarray:
    """Whether the mean of each column of `excess` [groups, t] is below 0, by bets."""
    return betting_test(excess, np.empty((0, excess.shape[1])), error_rate, level)


def enough_groups(
    groups: KeptGroups,
    error_rate: float,
    excess_rate: float,
    contradicting_level: float,
    excluding_level: float,
) -> int | None:
    """How many kept answers, or groups, decide in POWER of the draws; None beyond MOST.

    They are taken to be wrong as often as those at hand, and groups to be right or wrong as a
    whole.
    """
    rates = error_rate, excess_rate, contradicting_level, excluding_level
    n, n_wrong = float(groups.kept.sum()), float(groups.wrong.sum())
    risk = (n_wrong + error_rate) / (n + 1)
    decided: Callable[..., float] = _decided_singles if groups.is_single else _decided_groups
    number = len(groups.kept) + 1
    while number <= MOST:
        if decided(number, risk, *rates) >= POWER:
            return number
        number += max(1, round(STEP * number))
    return None


def _decided_singles(
    n: int,
    risk: float,
    error_rate: float,
    excess_rate: float,
    contradicting_level: float,
    excluding_level: float,
) -> float:
    """The share of draws of `n` single answers that decide."""
    n_wrong = np.arange(n + 1)
    n_excluding = int((bdtr(n_wrong, n, excess_rate) <= excluding_level).sum())
    n_contradicting = int((bdtrc(n_wrong[:-1], n, error_rate) <= contradicting_level).sum())
    below = bdtr(n_excluding - 1, n, risk) if n_excluding else 0.0
    above = bdtrc(n - n_contradicting, n, risk) if n_contradicting else 0.0
    return float(below + above)


def _decided_groups(
    n: int,
    risk: float,
    error_rate: float,
    excess_rate: float,
    contradicting_level: float,
    excluding_level: float,
) -> float:
    """The share of draws of `n` groups that decide."""
    wrong = seeded("groups that decide", n).random((n, DRAWS)) < risk
    excludes = _bets(wrong - excess_rate, excess_rate, excluding_level)
    contradicts = _bets(error_rate - wrong, 1 - error_rate, contradicting_level)
    return float((excludes | contradicts).mean())
