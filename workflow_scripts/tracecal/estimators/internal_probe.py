"""The internal-state probe (Ji et al. 2024): confidence before a token is generated."""

import polars as pl

from tracecal.estimators.reading import supervised_answers

answers = supervised_answers
SCORES: dict[str, pl.Expr] = {
    "internal_probe": pl.col("probability"),
}
