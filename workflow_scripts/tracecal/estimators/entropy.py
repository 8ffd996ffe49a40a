"""Entropy and position baselines (paper, appendix D): confidence = minus an entropy, in nats.

`mean_token_entropy` is also the entropy production rate (EPR) of Moslonka et al. (2025), as
artefactory/artefactual computes it (scoring/entropy_methods/epr.py), but over the whole vocabulary
instead of their K likeliest tokens.
"""

import polars as pl

from tracecal.estimators.trace_answers import trace_answers
from tracecal.features.scores import score

answers = trace_answers
IDS = ("mean_token_entropy", "max_token_entropy", "first_k_entropy", "last_k_entropy")
SCORES: dict[str, pl.Expr] = {name: score(name) for name in IDS}
