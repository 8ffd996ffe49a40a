"""The metrics of a multilingual task, language by language."""

from collections.abc import Sequence

import polars as pl

from tracecal.calibrate.metrics import METRICS, all_metrics

LANGUAGES = {"language": pl.String, **METRICS}


def metrics_by_language(
    predictions: pl.DataFrame,
    answers: pl.DataFrame,
    scores: pl.DataFrame,
    *,
    model: str,
    task: str,
    estimators: Sequence[str],
    splits: Sequence[int],
    ece_bins: int,
) -> pl.DataFrame:
    """As `all_metrics`, for each `language` of `answers`, the same probabilities throughout.

    Calibration is pooled over languages, as in the protocol; only the evaluation is divided.
    A task in one language has no rows here: its metrics are the pooled ones.
    """
    languages = answers["language"].unique().sort().to_list()
    if len(languages) < 2:
        return pl.DataFrame(schema=LANGUAGES)
    frames = []
    for language in languages:
        of_language = answers.filter(language=language).select("example_id", "correct")
        metrics = all_metrics(
            predictions.join(of_language, on="example_id", how="semi"),
            of_language,
            scores,
            model=model,
            task=task,
            estimators=estimators,
            splits=splits,
            ece_bins=ece_bins,
        )
        frames.append(metrics.select(pl.lit(language).alias("language"), *METRICS))
    return pl.concat(frames)
