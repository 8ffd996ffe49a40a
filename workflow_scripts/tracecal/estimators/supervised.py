"""Estimators that are trained on labelled rows of their own, and give a probability.

The internal-state probe (Ji et al. 2024) is confident before a token is generated; LARS (Yaldiz et
al. 2025) is a learned score of the answer's text and token probabilities.
"""

import polars as pl

from tracecal.estimators.reading import supervised_answers

answers = supervised_answers
SCORES: dict[str, pl.Expr] = dict.fromkeys(("internal_probe", "lars"), pl.col("probability"))
