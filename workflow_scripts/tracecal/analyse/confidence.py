"""One confidence per answer and estimator, for analyses that look at answers one by one."""

from collections.abc import Sequence

import polars as pl

from tracecal.analyse.pairs import KEYS
from tracecal.calibrate.answers import mean_probabilities


def with_confidences(
    answers: pl.DataFrame,
    scores: pl.DataFrame,
    predictions: pl.DataFrame,
    learned: Sequence[str],
) -> pl.DataFrame:
    """`answers` with a column per estimator, larger = more confident; null where undefined.

    That is the column of `scores` (keys and one column per estimator) where the score does not
    depend on the split; for those `learned` it is the mean of their `probability` in
    `predictions` over the splits in which the answer was evaluated.
    """
    joined = answers.join(scores, on=KEYS, how="left", validate="1:1")
    for estimator in learned:
        means = mean_probabilities(predictions.filter(estimator=estimator), *KEYS)
        renamed = means.rename({"probability": estimator})
        joined = joined.join(renamed, on=KEYS, how="left", validate="1:1")
    return joined.sort(KEYS)
