"""LARS (Yaldiz et al. 2025): a learned score of the answer's text and token probabilities."""

import polars as pl

from tracecal.estimators.reading import supervised_answers

answers = supervised_answers
SCORES: dict[str, pl.Expr] = {
    "lars": pl.col("probability"),
}
