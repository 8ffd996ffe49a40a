"""Token risk in the spike analyses: H_t, its mean over the answer, and how far a peak exceeds it
(paper, appendix A).
"""

import polars as pl

from tracecal.analyse.pairs import KEYS

FEATURES = ("mean_entropy", "max_entropy", "window_entropy")

# M_H^(4) of an answer within one window is its mean; the two sums may round differently.
_ROUNDING = 12

RISKS = {
    "mean_risk": pl.col("mean_entropy"),
    "max_token_risk": pl.col("max_entropy"),
    "spike_gap": (pl.col("window_entropy") - pl.col("mean_entropy")).round(_ROUNDING),
}


def with_risks(features: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """The features' rows with `correct` and RISKS (nats), by model, task and example.

    Answers without entropies, as files may hold, are left out.
    """
    judged = features.join(labels, on=KEYS, how="inner", validate="1:1")
    return judged.with_columns(**RISKS).drop_nulls([*RISKS]).sort(KEYS)
