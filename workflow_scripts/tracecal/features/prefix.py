"""The first tokens of traces, all that is known while an answer is generated."""

import polars as pl

LISTS = ("surprisal", "entropy", "entropy_lower", "entropy_upper")


def first_tokens(traces: pl.DataFrame, prefix: int | float | None) -> pl.DataFrame:
    """Cut the lists of traces to their first `prefix` tokens, or to that share of them, rounded up.

    None changes nothing.

    >>> traces = pl.DataFrame({"surprisal": [[3.0, 2.0, 1.0]], "entropy": [[3.0, 2.0, 1.0]]})
    >>> first_tokens(traces, 2)["entropy"].to_list(), first_tokens(traces, 0.5)["entropy"].to_list()
    ([[3.0, 2.0]], [[3.0, 2.0]])
    """
    if prefix is None:
        return traces
    length = pl.col("surprisal").list.len()
    n_tokens = (length * prefix).ceil() if isinstance(prefix, float) else pl.lit(prefix)
    lists = [name for name in LISTS if name in traces.columns]
    return traces.with_columns(pl.col(lists).list.head(n_tokens.cast(pl.Int64)))
