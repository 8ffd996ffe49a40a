"""Token risk in the spike analyses: H_t, its mean over the answer, and how far a peak exceeds it
(paper, appendix A).
"""

from collections.abc import Sequence

import polars as pl

from trace_workflow.analyses.study_files import KEYS, Pairs, Paths, read_labels, read_pairs

FEATURES = ("mean_entropy", "max_entropy", "window_entropy")

# M_H^(4) of an answer within one window is its mean; the two sums may round differently.
_ROUNDING = 12

RISKS = {
    "mean_risk": pl.col("mean_entropy"),
    "max_token_risk": pl.col("max_entropy"),
    "spike_gap": (pl.col("window_entropy") - pl.col("mean_entropy")).round(_ROUNDING),
}


def read_risks(features: Paths, labels: Paths, pairs: Pairs, more: Sequence[str]) -> pl.DataFrame:
    """`with_risks` from the files of `pairs`, with `more` features."""
    measured = read_pairs(features, pairs, ["example_id", *FEATURES, *more])
    return with_risks(measured, read_labels(labels, pairs))


def with_risks(features: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """The features' rows with `correct` and RISKS (nats), by model, task and example.

    Answers without entropies (from files) are left out.
    """
    labelled = features.join(labels, on=KEYS, how="inner", validate="1:1")
    return labelled.with_columns(**RISKS).drop_nulls([*RISKS]).sort(KEYS)
