"""Baselines of a trace alone: likelihood, entropy, trajectory (paper, appendix D) and CES.

1. `answers(traces, task)` reads the evaluated answers of a task.
2. `SCORES` has the score of each estimator by id, in the table of `features.SCORES`: confidence
   from p_t = exp(-s_t), minus an entropy in nats, or how uncertainty moves along the answer.
3. `family_scores` computes those of a family.

Mean token entropy is also the entropy production rate (EPR) of Moslonka et al. (2025), as
artefactory/artefactual computes it (scoring/entropy_methods/epr.py), but over the whole vocabulary
instead of their K likeliest tokens.

CES, the calibrated entropy score (Villani et al. 2026), is -sqrt(F(mean H) F(max H)), where F is
the empirical distribution function of the entropies of reference tokens. As in the authors' variant
without labels, these are the tokens of all answers that are scored together, here a model's answers
to a task: no other trace estimator looks at more than one answer. Agrees with
Heman10x-NGU/hallucination-sentinel.
"""

import polars as pl

from tracecal.estimators import operators as op
from tracecal.estimators.families import FAMILIES
from tracecal.estimators.features import SCORES as TRACE_SCORES
from tracecal.estimators.features import input_matrix
from tracecal.io.evaluated import evaluated
from tracecal.io.traces import read_traces

H = pl.col("entropy")


def score(name: str) -> pl.Expr:
    """The score `name` of answers with `surprisal` and `entropy`."""

    def compute(traces: pl.Series) -> pl.Series:
        frame = traces.struct.unnest()
        return pl.Series(name, input_matrix(frame, [f"scores.{name}"])[:, 0], nan_to_null=True)

    lists = pl.struct("surprisal", "entropy")
    return lists.map_batches(compute, return_dtype=pl.Float64, is_elementwise=True)


def reference_share(entropy: pl.Expr) -> pl.Expr:
    """F: the share of all answers' tokens whose entropy is at most `entropy`."""
    tokens = H.drop_nulls().explode().cast(pl.Float64).sort()
    return tokens.search_sorted(entropy, side="right") / H.list.len().sum()


SCORES: dict[str, pl.Expr] = {
    name: score(name) for name in TRACE_SCORES if name not in FAMILIES["trace"].SCORES
} | {"ces": -(reference_share(op.mean(H)) * reference_share(H.list.max().cast(pl.Float64))).sqrt()}


def answers(traces: str, task: str) -> pl.DataFrame:
    """The evaluated answers of a task, with surprisals and entropies."""
    return evaluated(read_traces(traces, ["example_id", "surprisal", "entropy"]), task)
