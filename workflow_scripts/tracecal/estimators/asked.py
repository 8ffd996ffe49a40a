"""What a model says of its own answer.

P(True) (Kadavath et al. 2022) is the probability that the model gives its answer of being true;
null, that is undefined, where neither option has any. Verbalised confidence (Tian et al. 2023) is
the number that the model states, or null.
"""

import polars as pl

from tracecal.io.traces import read_arrow

A, B = pl.col("p_a"), pl.col("p_b")

SCORES: dict[str, pl.Expr] = {
    "p_true": A / (A + B),
    "verbalized": pl.col("confidence"),
}


def answers(asked: str) -> pl.DataFrame:
    """What the model said of each evaluated answer: `p_a` and `p_b`, or `confidence`."""
    return read_arrow(asked)
