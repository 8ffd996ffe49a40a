"""Tests of error rates by betting."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, ndtri

from tracecal.calibration.rated_answers import LabelledAnswers


def significance_level(confidence: float, together: int = 1) -> float:
    """The level of each of so many tests that hold `together` with a confidence."""
    return round((1 - confidence) / together, 12)  # 1 - 0.9 is a little less than 0.1


@dataclass(frozen=True)
class Evidence:
    """The evidence for thresholds [t]: how much of each tested group is `kept`, and kept and
    `wrong`, both [groups, t]; and `before` [seen groups, t], the Z of the calibration
    part.

    `single` says whether the task declares every answer to be a group of its own.
    """

    kept: np.ndarray
    wrong: np.ndarray
    before: np.ndarray
    single: bool

    @classmethod
    def of(
        cls,
        seen: LabelledAnswers,
        tested: LabelledAnswers,
        thresholds: np.ndarray,
        error_rate: float,
        single: bool,
        most: int,
    ) -> "Evidence":
        before = seen.wrong(thresholds, most) - error_rate * seen.kept(thresholds, most)
        return cls(tested.kept(thresholds, most), tested.wrong(thresholds, most), before, single)

    def passes(self, error_rate: float, level: float) -> np.ndarray:
        """Whether each threshold passes its test, [t]."""
        if self.single:
            wrong, kept = self.wrong.sum(axis=0), self.kept.sum(axis=0)
            return bdtr(wrong, kept.astype(int), error_rate) <= level
        return betting_test(self.wrong - error_rate * self.kept, self.before, error_rate, level)


def betting_test(
    z: np.ndarray, before: np.ndarray, error_rate: float | np.ndarray, level: float
) -> np.ndarray:
    """Whether wealth reaches 1 / level by bets against each column's mean being above 0, [t].

    `error_rate` is that of all columns or of each [t]: no Z is above 1 less the rate.
    `z` [groups, t] are the Z of the tested groups in order, `before` [seen groups, t] those of the
    calibration part, which only steer the bets. Wealth should be 1 / level at the last group: with
    m groups to go, of variance v, a Gaussian walk from level * wealth = Φ(d) to 1 is bet at
    φ(d) / (Φ(d) sqrt(m v)), which nearly attains the power of the test that knows the walk. v is
    the mean square of the Z so far and of one group that is all wrong.
    """
    wealth = np.full(z.shape[1], level)
    squares = (before**2).sum(axis=0) + (1 - error_rate) ** 2
    squares = np.cumsum(np.vstack([squares, z[:-1] ** 2]), axis=0)
    place = np.arange(len(z))[:, None]
    spread = np.sqrt((len(z) - place) * squares / (len(before) + 1 + place))
    most = 1 / (1 - error_rate)
    for z_group, spread_to_go in zip(z, spread, strict=True):
        inside = np.minimum(np.maximum(wealth, 1e-12), 1 - 1e-12)
        density = np.exp(-(ndtri(inside) ** 2) / 2) / math.sqrt(2 * math.pi)
        bet = np.minimum(density / (inside * spread_to_go), most)
        won = wealth * np.maximum(1 - bet * z_group, 0)
        wealth = np.where(wealth < 1 - 1e-12, won, wealth)
    return wealth >= 1 - 1e-12


def min_groups(error_rate: float, level: float) -> int:
    """How many groups suffice for a guarantee where no answer is wrong."""
    return math.ceil(math.log(level) / math.log(1 - error_rate))
