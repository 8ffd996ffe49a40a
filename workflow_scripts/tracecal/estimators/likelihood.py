"""Token- and sequence-likelihood baselines (paper, appendix D): confidence from p_t = exp(-s_t)."""

import polars as pl

from tracecal.estimators.trace_answers import trace_answers
from tracecal.features import operators as op

S = pl.col("surprisal")
P = op.probabilities(S)

answers = trace_answers
SCORES: dict[str, pl.Expr] = {
    "first_token_prob": P.list.first(),
    "mean_prob": op.mean(P),
    "len_norm_logp": (-op.mean(S)).exp(),
    "seq_logp": (-op.length_normalised(S, 0)).exp(),
    "min_prob": P.list.min(),
    "high_prob_token_rate": op.rate(P, lambda p: p > op.HIGH_PROBABILITY),
}
