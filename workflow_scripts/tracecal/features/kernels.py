"""The operators and statistics of a trace as NumPy functions of answers of one length.

`values` is [answers, T], T >= 1, in nats unless a function says otherwise; the result is [answers].
Both the features of many stored answers (`operators.per_answer`) and those of a single one
call them.
"""

import math
from collections.abc import Callable

import numpy as np

PERCENT = (10, 25, 50, 75, 90)
TINY = 1e-8  # keeps a moment finite where all values are equal; the authors' value
# The nine of the eleven statistics of Entropy Sentinel that TRACE's features lack.
STATISTICS = (
    "entropy_sum",
    "entropy_deviation",
    *(f"entropy_q{percent}" for percent in PERCENT),
    "entropy_skewness",
    "entropy_kurtosis",
)


def mean(values: np.ndarray) -> np.ndarray:
    return values.mean(1)


def variance(values: np.ndarray) -> np.ndarray:
    """Population variance."""
    return values.var(1)


def largest(values: np.ndarray) -> np.ndarray:
    return values.max(1)


def length(values: np.ndarray) -> np.ndarray:
    return np.full(len(values), float(values.shape[1]))


def first_mean(values: np.ndarray, k: int) -> np.ndarray:
    return values[:, :k].mean(1)


def last_mean(values: np.ndarray, k: int) -> np.ndarray:
    return values[:, -k:].mean(1)


def slope(values: np.ndarray) -> np.ndarray:
    """Least-squares slope on t; 0 when T = 1."""
    length = values.shape[1]
    centred = np.arange(length) - (length - 1) / 2
    return np.vecdot(values, centred) / (np.vecdot(centred, centred) or 1)


def r_squared(values: np.ndarray) -> np.ndarray:
    """R² of the least-squares line on t; 0 when T < 3 or where all values are equal."""
    length = values.shape[1]
    level = (np.ptp(values, axis=1) == 0) | (length < 3)
    centred = np.arange(length) - (length - 1) / 2
    explained = slope(values) ** 2 * np.vecdot(centred, centred)
    return np.where(level, 0.0, explained / np.where(level, 1.0, values.var(1) * length))


def decayed(values: np.ndarray, decay: float) -> np.ndarray:
    """Σ w_t x_t / Σ w_t with w_t = exp(-(t-1)/decay)."""
    weights = np.exp(-np.arange(values.shape[1]) / decay)
    return np.vecdot(values, weights) / weights.sum()


def window_peak(values: np.ndarray, window: int) -> np.ndarray:
    """The largest mean over `window` consecutive tokens."""
    sums, width = _windows(values, window)
    return sums.max(1) / width


def window_start(values: np.ndarray, window: int) -> np.ndarray:
    """The number of tokens before the first window with the largest mean."""
    return _windows(values, window)[0].argmax(1).astype(float)


def _windows(values: np.ndarray, window: int) -> tuple[np.ndarray, int]:
    """Sums [n, windows] over `window` consecutive tokens of values [n, T] (over all when
    T < window), and the number of tokens in a sum.
    """
    width = min(window, values.shape[1])
    starts = values.shape[1] - width + 1
    sums = values[:, :starts].copy()
    for later in range(1, width):
        sums += values[:, later : later + starts]
    return sums, width


def length_normalised(values: np.ndarray, exponent: float) -> np.ndarray:
    """Σ x_t / T^exponent."""
    return values.sum(1) / values.shape[1] ** exponent


def rate(values: np.ndarray, condition: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Share of the values that meet `condition`."""
    return condition(values).mean(1)


def statistics(values: np.ndarray) -> np.ndarray:
    """The STATISTICS of the tokens of answers [m, T], [m, 9]."""
    length = values.shape[1]
    centred = values - values.mean(1, keepdims=True)
    squares = centred**2
    deviation = np.sqrt(squares.sum(1) / max(length - 1, 1))
    ordered = np.sort(values, axis=1)

    def quantile(share: float) -> np.ndarray:
        """The `share` quantile over the tokens, linearly interpolated."""
        position = share * (length - 1)
        below, above = ordered[:, math.floor(position)], ordered[:, math.ceil(position)]
        return below + (position % 1) * (above - below)

    return np.column_stack(
        [
            values.sum(1),
            deviation,
            *(quantile(percent / 100) for percent in PERCENT),
            np.vecdot(squares, centred) / length / (deviation**3 + TINY),
            np.vecdot(squares, squares) / length / (deviation**4 + TINY),
        ]
    )
