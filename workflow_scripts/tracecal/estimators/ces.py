"""CES, the calibrated entropy score (Villani et al. 2026): confidence = -sqrt(F(mean H) F(max H)).

F is the empirical distribution function of the entropies of reference tokens. As in the authors'
variant without labels, these are the tokens of all answers that are scored together, here a model's
answers to a task: no other trace estimator looks at more than one answer. Agrees with
Heman10x-NGU/hallucination-sentinel.
"""

import polars as pl

from tracecal.estimators.trace_answers import trace_answers
from tracecal.features import operators as op

H = pl.col("entropy")


def reference_share(entropy: pl.Expr) -> pl.Expr:
    """F: the share of all answers' tokens whose entropy is at most `entropy`."""
    tokens = H.drop_nulls().explode().cast(pl.Float64).sort()
    return tokens.search_sorted(entropy, side="right") / H.list.len().sum()


answers = trace_answers
SCORES: dict[str, pl.Expr] = {
    "ces": -(reference_share(op.mean(H)) * reference_share(H.list.max().cast(pl.Float64))).sqrt(),
}
