"""P(True) (Kadavath et al. 2022): the probability that the model gives its answer of being true.

Null, that is undefined, where neither option has any probability.
"""

import polars as pl

from tracecal.io.traces import read_arrow

A, B = pl.col("p_a"), pl.col("p_b")

SCORES: dict[str, pl.Expr] = {
    "p_true": A / (A + B),
}


def answers(asked: str) -> pl.DataFrame:
    """The probabilities of both options for each evaluated answer."""
    return read_arrow(asked, ["example_id", "p_a", "p_b"])
