"""Verbalised confidence (Tian et al. 2023): the number that the model states, or null."""

import polars as pl

from tracecal.io.traces import read_arrow

SCORES: dict[str, pl.Expr] = {
    "verbalized": pl.col("confidence"),
}


def answers(asked: str) -> pl.DataFrame:
    """The confidence that the model states for each evaluated answer."""
    return read_arrow(asked, ["example_id", "confidence"])
