"""Trajectory-diagnostic baselines (paper, appendix D): how uncertainty moves along the answer."""

import polars as pl

from tracecal.decode.traces import read_traces
from tracecal.operate import operators as op
from tracecal.tasks.roles import evaluated

S, H = pl.col("surprisal"), pl.col("entropy")

SCORES: dict[str, pl.Expr] = {
    "windowed_entropy": -op.window_peak(H, op.WINDOW),
    "entropy_variance": -op.variance(H),
    "entropy_slope": -op.slope(H),
    "token_prob_slope": op.slope(op.probabilities(S)),
}


def answers(traces: str, task: str) -> pl.DataFrame:
    """The evaluated answers of a task with their traces."""
    return evaluated(read_traces(traces, ["example_id", "surprisal", "entropy"]), task)
