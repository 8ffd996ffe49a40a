"""Trajectory-diagnostic baselines (paper, appendix D): how uncertainty moves along the answer."""

import polars as pl

from tracecal.estimators.trace_answers import trace_answers
from tracecal.features import operators as op

S, H = pl.col("surprisal"), pl.col("entropy")

answers = trace_answers
SCORES: dict[str, pl.Expr] = {
    "windowed_entropy": -op.window_peak(H, op.WINDOW),
    "entropy_variance": -op.variance(H),
    "entropy_slope": -op.slope(H),
    "token_prob_slope": op.slope(op.probabilities(S)),
    # After Devic et al. 2025, whose lengths are those of reasoning models' thoughts.
    "length_alone": -S.list.len().cast(pl.Float64).log(),
}
