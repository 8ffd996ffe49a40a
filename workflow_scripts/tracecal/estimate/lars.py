"""LARS (Yaldiz et al. 2025): a learned score of the answer's text and token probabilities."""

import polars as pl

from tracecal.estimate.learned import learned_probabilities

SCORES: dict[str, pl.Expr] = {
    "lars": pl.col("probability"),
}


def answers(learned: str, task: str, slug: str) -> pl.DataFrame:
    """The evaluated answers of the task `slug` with the scorer's `probability`."""
    return learned_probabilities(learned, task, slug)
