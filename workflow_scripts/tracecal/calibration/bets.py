"""A test of error rates that bets on one group of answers after another."""

import math

import numpy as np
from scipy.special import ndtri


def significance_level(confidence: float) -> float:
    """The significance level of a test at a confidence."""
    return round(1 - confidence, 12)  # 1 - 0.9 is a little less than 0.1


def min_groups(error_rate: float, level: float) -> int:
    """How many groups guarantee an error rate if no answer is wrong."""
    return math.ceil(math.log(level) / math.log1p(-error_rate))


def betting_test(
    excess: np.ndarray,
    calibration_excess: np.ndarray,
    error_rate: float | np.ndarray,
    level: float,
) -> np.ndarray:
    """Test whether the mean excess of each column is at most 0, by bets that it is above 0: [t].

    Wealth starts at `level`, and the test passes when it reaches 1. Each bet aims at 1 in the last
    group: with m groups to go, of variance v, a Gaussian walk from wealth Φ(d) to 1 is bet at
    φ(d) / (Φ(d) sqrt(m v)), which nearly attains the power of the test that knows the walk. v is
    the mean square of the excesses so far and of one group that is all wrong.

    Parameters
    ----------
    excess : array [groups, t]
        Errors less the target, in each tested group, in order; at most 1 - `error_rate`.
    calibration_excess : array [calibration groups, t]
        The same for the calibration part, which only steers the bets.
    error_rate : float or array [t]
        Target error rate.
    level : float
        Significance level.
    """
    n_groups = len(excess)
    wealth = np.full(excess.shape[1], level)
    squares = (calibration_excess**2).sum(axis=0) + (1 - error_rate) ** 2
    squares = np.cumsum(np.vstack([squares, excess[:-1] ** 2]), axis=0)
    number = np.arange(n_groups)[:, None]
    spread = np.sqrt((n_groups - number) * squares / (len(calibration_excess) + 1 + number))
    largest_bet = 1 / (1 - error_rate)
    for group_excess, spread_to_go in zip(excess, spread, strict=True):
        inside = np.minimum(np.maximum(wealth, 1e-12), 1 - 1e-12)
        density = np.exp(-(ndtri(inside) ** 2) / 2) / math.sqrt(2 * math.pi)
        bet = np.minimum(density / (inside * spread_to_go), largest_bet)
        new_wealth = wealth * np.maximum(1 - bet * group_excess, 0)
        wealth = np.where(wealth < 1 - 1e-12, new_wealth, wealth)
    return wealth >= 1 - 1e-12
