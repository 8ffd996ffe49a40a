"""The first tokens of traces, for what is known while an answer is generated."""

import polars as pl

LISTS = ("surprisal", "entropy", "entropy_lower", "entropy_upper")


def first_tokens(traces: pl.DataFrame, prefix: int | float | None) -> pl.DataFrame:
    """`traces` whose LISTS end after the first `prefix` tokens, or that share of them rounded up.

    None leaves them whole.

    >>> traces = pl.DataFrame({"surprisal": [[3.0, 2.0, 1.0]], "entropy": [[3.0, 2.0, 1.0]]})
    >>> first_tokens(traces, 2)["entropy"].to_list(), first_tokens(traces, 0.5)["entropy"].to_list()
    ([[3.0, 2.0]], [[3.0, 2.0]])
    """
    if prefix is None:
        return traces
    length = pl.col("surprisal").list.len()
    seen = (length * prefix).ceil() if isinstance(prefix, float) else pl.lit(prefix)
    held = [name for name in LISTS if name in traces.columns]
    return traces.with_columns(pl.col(held).list.head(seen.cast(pl.Int64)))
