"""The internal-state probe (Ji et al. 2024): confidence before a token is generated."""

import polars as pl

from tracecal.estimate.learned import learned_probabilities

SCORES: dict[str, pl.Expr] = {
    "internal_probe": pl.col("probability"),
}


def answers(learned: str, task: str, slug: str) -> pl.DataFrame:
    """The evaluated answers of the task `slug` with the probe's `probability`."""
    return learned_probabilities(learned, task, slug)
