"""Tests of new labels against an error rate that was guaranteed.

1. `KeptAnswers` counts labelled answers that are kept, one of each question.
2. `KeptAnswers.contradicts` tests that the error rate is higher than guaranteed, and `rules_out`
   that it is lower than a rate that must not pass.
3. `enough_answers` says how many would decide.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc

# Enough labels decide in POWER of the draws. Numbers are tried up to MOST, each a share STEP more.
POWER, MOST, STEP = 0.8, 20_000, 0.05


class KeptAnswers(NamedTuple):
    """Labelled answers that are kept: `n` of them, `wrong` ones among these."""

    n: int
    wrong: int

    def contradicts(self, error_rate: float, level: float) -> bool:
        """Whether the error rate is above `error_rate`, wrongly with at most `level` probability.

        >>> KeptAnswers(20, 8).contradicts(0.2, 0.05)
        True
        """
        return self.wrong > 0 and bool(bdtrc(self.wrong - 1, self.n, error_rate) <= level)

    def rules_out(self, error_rate: float, level: float) -> bool:
        """Whether the error rate is below `error_rate`, wrongly with at most `level` probability.

        >>> KeptAnswers(20, 1).rules_out(0.3, 0.05)
        True
        """
        return self.n > 0 and bool(bdtr(self.wrong, self.n, error_rate) <= level)


def enough_answers(
    answers: KeptAnswers,
    error_rate: float,
    excess_rate: float,
    contradicting_level: float,
    excluding_level: float,
) -> int | None:
    """How many kept answers decide in POWER of the draws; None beyond MOST.

    They are taken to be wrong as often as those at hand.
    """
    rates = error_rate, excess_rate, contradicting_level, excluding_level
    risk = (answers.wrong + error_rate) / (answers.n + 1)
    number = answers.n + 1
    while number <= MOST:
        if _deciding_share(number, risk, *rates) >= POWER:
            return number
        number += max(1, round(STEP * number))
    return None


def _deciding_share(
    n: int,
    risk: float,
    error_rate: float,
    excess_rate: float,
    contradicting_level: float,
    excluding_level: float,
) -> float:
    """The share of draws of `n` answers that decide."""
    n_wrong = np.arange(n + 1)
    n_excluding = int((bdtr(n_wrong, n, excess_rate) <= excluding_level).sum())
    n_contradicting = int((bdtrc(n_wrong[:-1], n, error_rate) <= contradicting_level).sum())
    below = bdtr(n_excluding - 1, n, risk) if n_excluding else 0.0
    above = bdtrc(n - n_contradicting, n, risk) if n_contradicting else 0.0
    return float(below + above)
