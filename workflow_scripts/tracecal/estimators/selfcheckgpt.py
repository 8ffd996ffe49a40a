"""SelfCheckGPT (Manakul et al. 2023): do sampled answers contradict the decoded one?

s is the mean over the samples of P(contradiction), with neutral left out: P(contradiction) /
(P(contradiction) + P(entailment)), premise = sample, hypothesis = the whole decoded answer. In the
exact variant s is the share of samples whose normalised text differs.

This is their equation of SelfCheckGPT with NLI, with the whole answer as the sentence, and without
the question. Agrees with the authors' code (potsawee/selfcheckgpt, SelfCheckNLI), whose model reads
the hypothesis first because it was trained so; ours reads the premise first, as NLI models do.
"""

import polars as pl

from tracecal.answers.normalised_text import normalised
from tracecal.io.traces import read_arrow, read_traces

SCORES: dict[str, pl.Expr] = {"selfcheckgpt": 1 - pl.col("inconsistency")}


def contradictions(comparisons: pl.DataFrame) -> pl.DataFrame:
    """`example_id` and `inconsistency` s in [0, 1] from comparisons with the decoded answer."""
    entailment, contradiction = (
        pl.col(name).cast(pl.Float64) for name in ("entailment", "contradiction")
    )
    return (
        comparisons.filter(pl.col("hypothesis").is_null())
        .group_by("example_id")
        .agg(inconsistency=(contradiction / (contradiction + entailment)).mean())
        .sort("example_id")
    )


def differences(samples: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """`example_id` and `inconsistency` s, the share of `samples` that differ from the `answer`."""
    differs = normalised(pl.col("text")) != normalised(pl.col("answer"))
    return (
        samples.join(answers.select("example_id", "answer"), on="example_id", validate="m:1")
        .group_by("example_id")
        .agg(inconsistency=differs.mean())
        .sort("example_id")
    )


def answers(
    samples: str, traces: str, equivalence: str, comparisons: str | None = None
) -> pl.DataFrame:
    """The inconsistency of each evaluated answer; `equivalence` is 'exact' or 'nli'."""
    if equivalence == "nli":
        return contradictions(read_arrow(comparisons))
    return differences(
        read_arrow(samples, ["example_id", "text"]), read_traces(traces, ["example_id", "answer"])
    )
