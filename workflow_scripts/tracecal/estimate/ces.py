"""CES, the calibrated entropy score (Villani et al. 2026): confidence = -sqrt(F(mean H) F(max H)).

F is the empirical distribution function of the entropies of reference tokens. As in the authors'
variant without labels, these are the tokens of all answers that are scored together, here a model's
answers to a task: it is the only estimator of traces that compares an answer with others. Agrees
with Heman10x-NGU/hallucination-sentinel.
"""

import polars as pl

from tracecal.estimate.traced import answers as answers
from tracecal.operate import operators as op

H = pl.col("entropy")


def reference_share(entropy: pl.Expr) -> pl.Expr:
    """F: the share of all answers' tokens whose entropy is at most `entropy`."""
    tokens = H.drop_nulls().explode().cast(pl.Float64).sort()
    return tokens.search_sorted(entropy, side="right") / H.list.len().sum()


LARGEST = H.list.max().cast(pl.Float64)
SCORES: dict[str, pl.Expr] = {
    "ces": -(reference_share(op.mean(H)) * reference_share(LARGEST)).sqrt(),
}
