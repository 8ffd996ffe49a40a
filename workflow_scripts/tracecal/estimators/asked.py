"""Self-evaluation: what a model says about its own answer.

P(True) (Kadavath et al. 2022) is the probability that the model gives to its answer being true,
undefined where it gives none to either option. Verbalised confidence (Tian et al. 2023) is the
number that the model states, if any.
"""

import polars as pl

from tracecal.io.traces import read_arrow

A, B = pl.col("p_a"), pl.col("p_b")

SCORES: dict[str, pl.Expr] = {
    "p_true": A / (A + B),
    "verbalized": pl.col("confidence"),
}


def answers(asked: str) -> pl.DataFrame:
    """The reply about each evaluated answer: `p_a` and `p_b`, or `confidence`."""
    return read_arrow(asked)
