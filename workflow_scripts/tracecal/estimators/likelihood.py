"""Token- and sequence-likelihood baselines (paper, appendix D): confidence from p_t = exp(-s_t)."""

import polars as pl

from tracecal.estimators.trace_answers import trace_answers
from tracecal.features.scores import score

answers = trace_answers
IDS = (
    "first_token_prob",
    "mean_prob",
    "len_norm_logp",
    "seq_logp",
    "min_prob",
    "high_prob_token_rate",
)
SCORES: dict[str, pl.Expr] = {name: score(name) for name in IDS}
