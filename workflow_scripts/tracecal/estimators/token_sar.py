"""TokenSAR (Duan et al. 2024): surprisals weighted by the tokens' relevance, U = Σ R̃_t s_t.

This is their token-level shifted entropy, with R̃ = R / ΣR and R_t = 1 - similarity of question and
answer to the same without token t. Agrees with IINemo/lm-polygraph (estimators/token_sar.py) and
Ybakman/TruthTorchLM (truth_methods/tokenSAR.py), except that special tokens have no relevance, that
a negative R_t becomes 0, and that all tokens weigh the same where no token is relevant
(`trace_workflow.models.token_sar_weights`): there the original formula divides by 0.
"""

import polars as pl

from tracecal.estimators.scores import require_aligned
from tracecal.io.evaluated import evaluated
from tracecal.io.traces import read_arrow, read_traces

# An answer of special tokens alone has no relevant token: U is undefined there, not 0.
ANY_RELEVANT = pl.col("weight").list.sum() > 0

SCORES: dict[str, pl.Expr] = {
    "token_sar": pl.when(ANY_RELEVANT).then((-pl.col("weighted_surprisal")).exp())
}


def weighted(traces: pl.DataFrame, weights: pl.DataFrame) -> pl.DataFrame:
    """Traces with their `weight` list and `weighted_surprisal` U (nats).

    Raises `InputError` where an answer and its weights have unequal numbers of tokens.
    """
    joined = traces.join(weights, on="example_id", validate="1:1")
    require_aligned(joined, "weight")
    products = pl.col("weight").cast(pl.List(pl.Float64)) * pl.col("surprisal").cast(
        pl.List(pl.Float64)
    )
    return joined.with_columns(weighted_surprisal=products.list.sum())


def answers(traces: str, weights: str, task: str) -> pl.DataFrame:
    """The evaluated answers of a task with their tokens' weights."""
    traced = evaluated(read_traces(traces, ["example_id", "surprisal"]), task)
    return weighted(traced, read_arrow(weights, ["example_id", "weight"]))
