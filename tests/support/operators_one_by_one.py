"""The operators answer by answer, each as its formula reads: what the package's are tested and
timed against. An answer's list is a column of its own in Polars' `list.agg`.
"""

from collections.abc import Callable

import polars as pl


def _per_answer(x: pl.Expr, reduce: Callable[[pl.Expr], pl.Expr]) -> pl.Expr:
    return x.list.agg(reduce(pl.element().cast(pl.Float64)))


def mean(x: pl.Expr) -> pl.Expr:
    return _per_answer(x, lambda values: values.mean())


def variance(x: pl.Expr) -> pl.Expr:
    return _per_answer(x, lambda values: values.var(ddof=0))


def first_mean(x: pl.Expr, k: int) -> pl.Expr:
    return mean(x.list.head(k))


def last_mean(x: pl.Expr, k: int) -> pl.Expr:
    return mean(x.list.tail(k))


def slope(x: pl.Expr) -> pl.Expr:

    def reduce(values: pl.Expr) -> pl.Expr:
        t = pl.int_range(pl.len()).cast(pl.Float64)
        centred = t - t.mean()
        spread = (centred**2).sum()
        return (
            pl.when(spread > 0)
            .then((centred * (values - values.mean())).sum() / spread)
            .otherwise(0.0)
        )

    return _per_answer(x, reduce)


def decayed(x: pl.Expr, decay: float) -> pl.Expr:

    def reduce(values: pl.Expr) -> pl.Expr:
        weights = (-pl.int_range(pl.len()).cast(pl.Float64) / decay).exp()
        return (weights * values).sum() / weights.sum()

    return _per_answer(x, reduce)


def window_peak(x: pl.Expr, window: int) -> pl.Expr:
    return _per_answer(x, lambda values: values.rolling_mean(window).max().fill_null(values.mean()))


def length_normalised(surprisal: pl.Expr, exponent: float) -> pl.Expr:
    return _per_answer(surprisal, lambda values: values.sum() / values.len().pow(exponent))


def probabilities(surprisal: pl.Expr) -> pl.Expr:
    return surprisal.list.eval((-pl.element().cast(pl.Float64)).exp())


def rate(x: pl.Expr, condition: Callable[[pl.Expr], pl.Expr]) -> pl.Expr:
    return _per_answer(x, lambda values: condition(values).mean())
