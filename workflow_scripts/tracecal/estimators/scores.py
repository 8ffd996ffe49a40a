"""Scores of one family of estimators, and of all families side by side."""

from collections.abc import Sequence

import polars as pl


def family_scores(
    frame: pl.DataFrame, scores: dict[str, pl.Expr], chosen: Sequence[str]
) -> pl.DataFrame:
    """`example_id` and the `chosen` scores, Float64, larger = more confident.

    Values that are not finite become null (undefined), so that none sorts as most confident.
    """
    columns = {
        name: pl.when((score := scores[name].cast(pl.Float64)).is_finite()).then(score)
        for name in chosen
    }
    return frame.select("example_id", **columns).sort("example_id")


def join_scores(
    ids: pl.DataFrame, families: Sequence[pl.DataFrame], order: Sequence[str]
) -> pl.DataFrame:
    """One row per `example_id` of `ids` with every family's scores, columns in `order`."""
    joined = ids
    for family in families:
        joined = joined.join(family, on="example_id", how="left", validate="1:1")
    return joined.select("example_id", *order).sort("example_id")
