"""Beam-distribution baselines (Flores et al. 2025).

b_k are the length-normalised log-probabilities of the beams, best first, and q = softmax(b).
"""

import polars as pl

from tracecal.io.traces import read_arrow

B = pl.col("normalised")
Q = B.list.eval((pl.element() - pl.element().max()).exp()).list.eval(
    pl.element() / pl.element().sum()
)

SCORES: dict[str, pl.Expr] = {
    "beam_ratio": (B.list.first() - B.list.last()).exp(),
    "beam_tail_thinness": Q.list.agg((pl.element() ** 2).sum()),
    "beam_entropy": Q.list.agg((pl.element() * pl.element().log()).fill_nan(0.0).sum()),
}


def normalised(beams: pl.DataFrame) -> pl.DataFrame:
    """Beams with `normalised`, the list of total log-probabilities over lengths (nats a token)."""
    return beams.with_columns(normalised=pl.col("beam_logprob") / pl.col("beam_length"))


def answers(beams: str) -> pl.DataFrame:
    """The beams of a task's evaluated answers."""
    return normalised(read_arrow(beams, ["example_id", "beam_logprob", "beam_length"]))
