"""Local risk operators over traces, as Polars expressions (paper, section 3.4 and appendix B).

Each takes a list column with one entry per token (nats, or probabilities where stated) and returns
one Float64 per answer. Lists have T >= 1 entries, none of them missing; position t counts from 1. A
missing or empty list gives no value. `features` holds the arithmetic.
"""

from functools import partial

import numpy as np
import polars as pl

from tracecal.estimators import features
from tracecal.estimators.features import (
    ALPHA,
    BETA,
    DECAY,
    GAMMA,
    LENGTH_EXPONENT,
    WINDOW,
    Kernel,
    blocks,
    mixture,
)


def per_answer(x: pl.Expr, kernel: Kernel) -> pl.Expr:
    """Apply a kernel of `tracecal.estimators.features` to the list of each answer.

    >>> frame = pl.DataFrame({"H": [[1.0, 3.0, 5.0], [7.0]]})
    >>> frame.select(per_answer(pl.col("H"), features.slope)).to_series().to_list()
    [2.0, 0.0]
    """

    def reduce_lists(lists: pl.Series) -> pl.Series:
        values = np.full(len(lists), np.nan)
        for rows, (block,) in blocks(lists.to_frame("list"), ["list"]):
            if block is not None:
                values[rows] = kernel(block)
        return pl.Series(lists.name, values, nan_to_null=True)

    return x.map_batches(reduce_lists, return_dtype=pl.Float64, is_elementwise=True)


def mean(x: pl.Expr) -> pl.Expr:
    """Mean over the answer's tokens.

    >>> pl.DataFrame({"H": [[1.0, 2.0], []]}).select(mean(pl.col("H"))).to_series().to_list()
    [1.5, None]
    """
    return per_answer(x, features.mean)


def first_mean(x: pl.Expr, k: int) -> pl.Expr:
    """Mean of the first `k` tokens (of all when T < k)."""
    return per_answer(x, partial(features.first_mean, k=k))


def last_mean(x: pl.Expr, k: int) -> pl.Expr:
    """Mean of the last `k` tokens (of all when T < k)."""
    return per_answer(x, partial(features.last_mean, k=k))


def decayed(x: pl.Expr, decay: float) -> pl.Expr:
    """D_λ(x) = Σ w_t x_t / Σ w_t with w_t = exp(-(t-1)/λ), λ = `decay` tokens.

    Early tokens weigh most:

    >>> traces = pl.DataFrame({"H": [[2.0, 0.0], [0.0, 2.0]]})
    >>> traces.select(decayed(pl.col("H"), 2).round(3)).to_series().to_list()
    [1.245, 0.755]
    """
    return per_answer(x, partial(features.decayed, decay=decay))


def window_peak(x: pl.Expr, window: int) -> pl.Expr:
    """M_x^(w): the largest mean over `window` consecutive tokens (over all when T < window).

    >>> traces = pl.DataFrame({"H": [[0.0, 4.0, 2.0, 0.0], [1.0]]})
    >>> traces.select(window_peak(pl.col("H"), 2)).to_series().to_list()
    [3.0, 1.0]
    """
    return per_answer(x, partial(features.window_peak, window=window))


def window_start(x: pl.Expr, window: int) -> pl.Expr:
    """The number of tokens before the window of M_x^(w), 0 when T < window.

    The first of several windows with the largest mean counts.
    """
    return per_answer(x, partial(features.window_start, window=window))


def length_normalised(surprisal: pl.Expr, exponent: float) -> pl.Expr:
    """L_ρ(s) = Σ s_t / T^ρ with ρ = `exponent`.

    >>> traces = pl.DataFrame({"s": [[1.0] * 16]})
    >>> traces.select(length_normalised(pl.col("s"), 0.25)).to_series().to_list()
    [8.0]
    """
    return per_answer(surprisal, partial(features.length_normalised, exponent=exponent))


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
    """R = α D_λ(H) + β M_H^(w) + γ L_ρ(s) (paper, equation 1; defaults of appendix B).

    >>> traces = pl.DataFrame({"s": [[0.5]], "H": [[2.0]]})
    >>> traces.select(trace_risk(pl.col("s"), pl.col("H")).round(6)).item()
    1.7
    """
    return mixture(
        decayed(entropy, decay),
        window_peak(entropy, window),
        length_normalised(surprisal, exponent),
        alpha,
        beta,
        gamma,
    )
