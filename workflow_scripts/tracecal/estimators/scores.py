"""Score tables: of one family of estimators, and of all families side by side."""

from collections.abc import Sequence

import polars as pl

from tracecal.errors import InputError


def family_scores(
    frame: pl.DataFrame, scores: dict[str, pl.Expr], ids: Sequence[str]
) -> pl.DataFrame:
    """Compute `example_id` and the scores `ids`, Float64: larger is more confident.

    Values that are not finite go missing, so that none sorts as most confident.

    >>> frame = pl.DataFrame({"example_id": ["a"], "p": [0.5]})
    >>> family_scores(frame, {"p_true": pl.col("p")}, ["p_true"])["p_true"].to_list()
    [0.5]
    """
    columns = {
        name: pl.when((score := scores[name].cast(pl.Float64)).is_finite()).then(score)
        for name in ids
    }
    return frame.select("example_id", **columns).sort("example_id")


def join_scores(
    ids: pl.DataFrame, families: Sequence[pl.DataFrame], order: Sequence[str]
) -> pl.DataFrame:
    """Join the scores of all families, a row per `example_id` of `ids`, columns in `order`."""
    joined = ids
    for family in families:
        joined = joined.join(family, on="example_id", how="left", validate="1:1")
    return joined.select("example_id", *order).sort("example_id")


def require_aligned(weighted: pl.DataFrame, column: str) -> None:
    """Raise `InputError` unless the list `column` has one entry per token of its answer."""
    unequal = weighted.filter(pl.col(column).list.len() != pl.col("surprisal").list.len())
    if unequal.height:
        raise InputError(
            f"the weights of example {unequal['example_id'][0]!r} belong to another answer, with "
            "another number of tokens. Recreate the file under weights/ with snakemake --force."
        )
