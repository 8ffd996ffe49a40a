"""The risk of an answer's tokens: their entropy, its mean, and how far a peak exceeds the mean."""

from collections.abc import Sequence

import polars as pl

from trace_workflow.analyses.study_files import KEYS, StudyFiles

FEATURES = ("mean_entropy", "max_entropy", "window_entropy")
# M_H^(4) of an answer within one window is its mean; the two sums may round differently.
ROUNDING = 12
RISKS = {
    "mean_risk": pl.col("mean_entropy"),
    "max_token_risk": pl.col("max_entropy"),
    "spike_gap": (pl.col("window_entropy") - pl.col("mean_entropy")).round(ROUNDING),
}


def read_risks(files: StudyFiles, extra_features: Sequence[str]) -> pl.DataFrame:
    """`add_risks` from the files of the pairs, with further features."""
    features = files.read("features", ["example_id", *FEATURES, *extra_features])
    return add_risks(features, files.labels())


def add_risks(features: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """The features' rows with `correct` and RISKS (nats), by model, task and example.

    Answers without entropies (from files) are left out.
    """
    labelled = features.join(labels, on=KEYS, how="inner", validate="1:1")
    return labelled.with_columns(**RISKS).drop_nulls([*RISKS]).sort(KEYS)
