"""Metrics of short, medium and long answers (paper, appendix, "Robustness and Reliability").

The strata are thirds of a task's answers by their number of tokens T. Answers of one length stay
together: a length belongs to the third that holds its mean rank, so that neither the order of the
answers nor chance decides, and the thirds are as even as the ties allow. A task with few different
lengths may leave a third empty. Calibration ignores the strata: the probabilities are
those of the main comparison.
"""

from collections.abc import Sequence

import polars as pl

from tracecal.calibrate.metrics import METRICS, all_metrics

STRATA = ("short", "medium", "long")
STRATIFIED = {"stratum": pl.String, **METRICS}


def strata(lengths: pl.DataFrame) -> pl.DataFrame:
    """`example_id` and `stratum` of answers with their `length`."""
    twice_rank = (2 * pl.col("length").rank("average")).cast(pl.Int64)
    third = (len(STRATA) * (twice_rank - 1)) // (2 * pl.len())
    names = pl.Series(STRATA)
    return lengths.select("example_id", stratum=pl.lit(names).gather(third))


def metrics_by_length(
    predictions: pl.DataFrame,
    answers: pl.DataFrame,
    scores: pl.DataFrame,
    lengths: pl.DataFrame,
    *,
    model: str,
    task: str,
    estimators: Sequence[str],
    ece_bins: int,
) -> pl.DataFrame:
    """As `all_metrics`, for each stratum of the evaluated answers; `lengths` has every answer."""
    splits = predictions["split"].unique().sort().to_list()
    frames = [pl.DataFrame(schema=STRATIFIED)]
    for stratum in STRATA:
        inside = strata(lengths).filter(stratum=stratum)
        metrics = all_metrics(
            predictions.join(inside, on="example_id", how="semi"),
            answers,
            scores,
            model=model,
            task=task,
            estimators=estimators,
            splits=splits,
            ece_bins=ece_bins,
        )
        frames.append(metrics.select(pl.lit(stratum).alias("stratum"), *METRICS))
    return pl.concat(frames)
