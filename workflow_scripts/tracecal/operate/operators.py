"""Local risk operators over traces, as Polars expressions (paper, section 3.4 and appendix B).

Each takes a list column with one entry per token (nats, or probabilities where stated) and
gives one Float64 per answer. Lists have T >= 1 entries, none of them null; position t counts from
1. The value of a null or empty list is null.

Inside, an operator is a NumPy function of all tokens in one flat array: `values` [tokens] of
many answers, one after another, with each answer's `starts` and `lengths` T [answers].
"""

import math
from collections.abc import Callable

import numpy as np
import polars as pl

ALPHA, BETA, GAMMA = 0.40, 0.40, 0.20
DECAY, WINDOW, LENGTH_EXPONENT = 2.0, 4, 0.25
LOW_PROBABILITY, HIGH_PROBABILITY = 0.1, 0.9

# Answers that are processed together, so that their tokens stay in the processor's cache.
AT_ONCE = 4096

Kernel = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def per_answer(x: pl.Expr, kernel: Kernel) -> pl.Expr:
    """`kernel(values, starts, lengths)` applied to each answer's list `x`."""
    return x.map_batches(
        lambda lists: _reduced(lists, kernel), return_dtype=pl.Float64, is_elementwise=True
    )


def _reduced(lists: pl.Series, kernel: Kernel) -> pl.Series:
    lengths = lists.list.len().fill_null(0).to_numpy().astype(np.intp)
    tokens = lists.explode(empty_as_null=False, keep_nulls=False).to_numpy()
    filled = np.flatnonzero(lengths)
    ends = np.cumsum(lengths)
    reduced = np.full(len(lengths), np.nan)
    for first in range(0, len(filled), AT_ONCE):
        rows = filled[first : first + AT_ONCE]
        start = ends[rows[0]] - lengths[rows[0]]
        values = tokens[start : ends[rows[-1]]].astype(float)
        reduced[rows] = kernel(values, ends[rows] - lengths[rows] - start, lengths[rows])
    return pl.Series(lists.name, reduced, nan_to_null=True)


def _positions(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """t - 1 of every token."""
    return np.arange(lengths.sum()) - np.repeat(starts, lengths)


def mean(x: pl.Expr) -> pl.Expr:
    """Mean over the answer's tokens."""
    return x.cast(pl.List(pl.Float64)).list.mean()


def _mean(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    return np.add.reduceat(values, starts) / lengths


def variance(x: pl.Expr) -> pl.Expr:
    """Population variance over the answer's tokens; 0 when T = 1."""

    def kernel(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        centred = values - np.repeat(_mean(values, starts, lengths), lengths)
        return _mean(centred**2, starts, lengths)

    return per_answer(x, kernel)


def first_mean(x: pl.Expr, k: int) -> pl.Expr:
    """Mean of the first `k` tokens (of all when T < k)."""
    return mean(x.list.head(k))


def last_mean(x: pl.Expr, k: int) -> pl.Expr:
    """Mean of the last `k` tokens (of all when T < k)."""
    return mean(x.list.tail(k))


def slope(x: pl.Expr) -> pl.Expr:
    """Least-squares slope of the values on t; 0 when T = 1."""

    def kernel(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        centred = np.arange(len(values)) - np.repeat(starts + (lengths - 1) / 2, lengths)
        spread = lengths * (lengths**2.0 - 1) / 12
        return np.add.reduceat(centred * values, starts) / np.where(lengths > 1, spread, 1)

    return per_answer(x, kernel)


def decayed(x: pl.Expr, decay: float) -> pl.Expr:
    """D_λ(x) = Σ w_t x_t / Σ w_t with w_t = exp(-(t-1)/λ), λ = `decay` tokens."""

    def kernel(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        weights = np.exp(-np.arange(lengths.max()) / decay)
        weighted = weights[_positions(starts, lengths)] * values
        return np.add.reduceat(weighted, starts) / np.cumsum(weights)[lengths - 1]

    return per_answer(x, kernel)


def window_peak(x: pl.Expr, window: int) -> pl.Expr:
    """M_x^(w): the largest mean over `window` consecutive tokens (over all when T < window)."""

    def kernel(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        sums, stops = _windows(values, starts, lengths, window)
        bounds = np.column_stack([starts, stops]).ravel()[:-1]
        if stops[-1] < len(values):
            bounds = np.append(bounds, stops[-1])
        peaks = np.maximum.reduceat(sums, bounds)[::2] / window
        return np.where(lengths < window, _mean(values, starts, lengths), peaks)

    return per_answer(x, kernel)


def window_start(x: pl.Expr, window: int) -> pl.Expr:
    """Where M_x^(w) is taken: how many tokens stand before the window, 0 when T < window.

    The first one where several windows have the largest mean.
    """

    def kernel(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        sums, stops = _windows(values, starts, lengths, window)
        ends = zip(starts, stops, strict=True)
        return np.array([np.argmax(sums[start:stop]) for start, stop in ends], dtype=float)

    return per_answer(x, kernel)


def _windows(
    values: np.ndarray, starts: np.ndarray, lengths: np.ndarray, window: int
) -> tuple[np.ndarray, np.ndarray]:
    """At each token the sum of the window that begins there; and where each answer's windows stop.

    They begin in [start, stop); those from stop on reach past the answer's end.
    """
    sums = values.copy()
    for later in range(1, window):
        sums[:-later] += values[later:]
    return sums, np.maximum(starts + lengths - window + 1, starts + 1)


def length_normalised(surprisal: pl.Expr, exponent: float) -> pl.Expr:
    """L_ρ(s) = Σ s_t / T^ρ with ρ = `exponent`."""
    return per_answer(
        surprisal,
        lambda values, starts, lengths: np.add.reduceat(values, starts) / lengths**exponent,
    )


def probabilities(surprisal: pl.Expr) -> pl.Expr:
    """Selected-token probabilities p_t = exp(-s_t), a list column."""
    return surprisal.list.eval((-pl.element().cast(pl.Float64)).exp())


def rate(x: pl.Expr, condition: Callable[[np.ndarray], np.ndarray]) -> pl.Expr:
    """Share of the tokens whose value meets `condition`, a function of an array of values."""

    def kernel(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        return _mean(condition(values).astype(float), starts, lengths)

    return per_answer(x, kernel)


def mixture(
    decayed_entropy: pl.Expr,
    window_entropy: pl.Expr,
    normalised_surprisal: pl.Expr,
    alpha: float = ALPHA,
    beta: float = BETA,
    gamma: float = GAMMA,
) -> pl.Expr:
    """R = α D + β M + γ L (paper, equation 1); raises `ValueError` unless the weights sum to 1."""
    weights = (alpha, beta, gamma)
    if min(weights) < 0 or not math.isclose(sum(weights), 1.0):
        raise ValueError(f"mixture weights must be non-negative and sum to 1, not {weights}")
    return alpha * decayed_entropy + beta * window_entropy + gamma * normalised_surprisal


def trace_risk(
    surprisal: pl.Expr,
    entropy: pl.Expr,
    *,
    alpha: float = ALPHA,
    beta: float = BETA,
    gamma: float = GAMMA,
    decay: float = DECAY,
    window: int = WINDOW,
    exponent: float = LENGTH_EXPONENT,
) -> pl.Expr:
    """R = α D_λ(H) + β M_H^(w) + γ L_ρ(s) (paper, equation 1; defaults of appendix B)."""
    return mixture(
        decayed(entropy, decay),
        window_peak(entropy, window),
        length_normalised(surprisal, exponent),
        alpha,
        beta,
        gamma,
    )
