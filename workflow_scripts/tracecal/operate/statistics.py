"""The statistics of Entropy Sentinel (Memoli Buffa and Del Corro 2026).

Eleven numbers describe the entropies of an answer's tokens: mean, standard deviation, largest, five
quantiles, skewness, kurtosis and sum. The definitions are those of the authors' code
(pmemoli/Entropy-Sentinel, engine/core/computations.py); where a single token leaves the standard
deviation undefined it is 0 here. Expressions and kernels are as in `operators`.
"""

import math

import numpy as np
import polars as pl

from tracecal.operate.operators import length_normalised, per_answer

PERCENT = (10, 25, 50, 75, 90)
TINY = 1e-8  # the authors'; keeps a moment finite where all values are equal


def statistics(x: pl.Expr, ordered: pl.Expr) -> dict[str, pl.Expr]:
    """The nine of them that TRACE has not among its features; `ordered` is `x` in order."""
    return {
        "entropy_sum": length_normalised(x, 0),
        "entropy_deviation": deviation(x),
        **{f"entropy_q{percent}": quantile(ordered, percent / 100) for percent in PERCENT},
        "entropy_skewness": standardised_moment(x, 3),
        "entropy_kurtosis": standardised_moment(x, 4),
    }


def deviation(x: pl.Expr) -> pl.Expr:
    """Standard deviation (ddof 1) over the answer's tokens; 0 when T = 1."""
    return per_answer(x, _deviation)


def _centred(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    return values - np.repeat(np.add.reduceat(values, starts) / lengths, lengths)


def _deviation(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    squares = np.add.reduceat(_centred(values, starts, lengths) ** 2, starts)
    return np.sqrt(squares / np.maximum(lengths - 1, 1))


def quantile(ordered: pl.Expr, share: float) -> pl.Expr:
    """The value below which a `share` of the answer's tokens lies, linearly interpolated.

    `ordered` are the tokens' values in ascending order.
    """

    def kernel(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        place = share * (lengths - 1)
        below, above = (starts + end(place).astype(int) for end in (np.floor, np.ceil))
        return values[below] + (place % 1) * (values[above] - values[below])

    return per_answer(ordered, kernel)


def standardised_moment(x: pl.Expr, order: int) -> pl.Expr:
    """mean (x - mean)^order / (sd^order + TINY), sd with ddof 1: skewness (3), kurtosis (4)."""

    def kernel(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        # Multiplied: NumPy's general power takes seven times as long.
        powers = math.prod([_centred(values, starts, lengths)] * order)
        moments = np.add.reduceat(powers, starts) / lengths
        return moments / (_deviation(values, starts, lengths) ** order + TINY)

    return per_answer(x, kernel)
