"""Entropy and position baselines (paper, appendix D): confidence = minus an entropy, in nats.

`mean_token_entropy` is also the entropy production rate (EPR) of Moslonka et al. (2025), as
artefactory/artefactual computes it (scoring/entropy_methods/epr.py), but over the whole vocabulary
instead of their K likeliest tokens.
"""

import polars as pl

from tracecal.estimators.trace_answers import trace_answers
from tracecal.features import operators as op

H = pl.col("entropy")
K = 3

answers = trace_answers
SCORES: dict[str, pl.Expr] = {
    "mean_token_entropy": -op.mean(H),
    "max_token_entropy": -H.list.max().cast(pl.Float64),
    "first_k_entropy": -op.first_mean(H, K),
    "last_k_entropy": -op.last_mean(H, K),
}
