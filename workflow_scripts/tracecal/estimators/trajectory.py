"""Trajectory-diagnostic baselines (paper, appendix D): how uncertainty moves along the answer."""

import polars as pl

from tracecal.estimators.trace_answers import trace_answers
from tracecal.features.scores import score

answers = trace_answers
IDS = ("windowed_entropy", "entropy_variance", "entropy_slope", "token_prob_slope", "length_alone")
SCORES: dict[str, pl.Expr] = {name: score(name) for name in IDS}
