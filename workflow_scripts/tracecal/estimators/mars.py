"""MARS (Bakman et al. 2024): U = 0.5 Σ ŵ_i NLL_i + 0.5 mean NLL over an answer's tokens.

NLL_i is the mean surprisal (nats) of phrase i's tokens, ŵ_i its weight: their equation of MARS,
where a token's exponent is 1/(2L) + u/2, L the number of tokens and u its equal share of its
phrase's weight. Special tokens count in neither half. Agrees with the authors' code
(Ybakman/LLM_Uncertainty, get_likelihoods.py), whose weights are importances that sum to 1, and with
Ybakman/TruthTorchLM (truth_methods/mars.py), whose weights are a softmax, as here.
"""

import polars as pl

from tracecal.estimators.scores import require_aligned
from tracecal.io.evaluated import evaluated
from tracecal.io.traces import read_arrow, read_traces

SCORES: dict[str, pl.Expr] = {"mars": (-pl.col("risk")).exp()}


def phrase_risk(traces: pl.DataFrame, weights: pl.DataFrame) -> pl.DataFrame:
    """Compute `example_id` and `risk` U, missing where an answer has only special tokens.

    `weights` has the `phrase` of each token, none for special ones, and the `weight` of each
    phrase. Raises `InputError` where they belong to other answers.
    """
    joined = traces.join(weights, on="example_id", validate="1:1")
    require_aligned(joined, "phrase")
    phrases = (
        joined.select("example_id", "surprisal", "phrase")
        .explode("surprisal", "phrase")
        .drop_nulls("phrase")
        .group_by("example_id", "phrase", maintain_order=True)
        .agg(nll=pl.col("surprisal").cast(pl.Float64).mean(), tokens=pl.len())
    )
    weighted = joined.select(
        "example_id", "weight", phrase=pl.int_ranges(pl.col("weight").list.len(), dtype=pl.Int32)
    ).explode("weight", "phrase")
    over_tokens = (pl.col("nll") * pl.col("tokens")).sum() / pl.col("tokens").sum()
    # In a fixed order: in another one the last bits of the sums would differ.
    risks = (
        phrases.join(weighted, on=["example_id", "phrase"], validate="1:1", maintain_order="left")
        .group_by("example_id", maintain_order=True)
        .agg(risk=0.5 * (pl.col("weight") * pl.col("nll")).sum() + 0.5 * over_tokens)
    )
    return traces.select("example_id").join(risks, on="example_id", how="left")


def answers(traces: str, weights: str, task: str) -> pl.DataFrame:
    """The evaluated answers of a task with their risk."""
    traced = evaluated(read_traces(traces, ["example_id", "surprisal"]), task)
    return phrase_risk(traced, read_arrow(weights, ["example_id", "phrase", "weight"]))
