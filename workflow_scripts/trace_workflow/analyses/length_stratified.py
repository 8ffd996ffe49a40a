"""Metrics of short, medium and long answers (paper, appendix, "Robustness and Reliability").

The strata are thirds of a task's answers by their number of tokens T. Answers of one length stay
together: a length belongs to the third that holds its mean rank, so that neither the order of the
answers nor chance decides, and the thirds are as even as ties allow. A task with few different
lengths may leave a third empty. Calibration ignores the strata: the probabilities are those of the
main comparison.
"""

from typing import Any

import polars as pl

from trace_workflow.analyses.study_files import StudyFiles
from tracecal.io.files import read_parquet
from tracecal.statistics.metrics import METRICS, metrics_by

STRATA = ("short", "medium", "long")
STRATIFIED = {"stratum": pl.String, **METRICS}


def analysis(files: StudyFiles, **settings: Any) -> pl.DataFrame:
    """`metrics_by_length` of each pair; the settings are its keyword arguments."""
    frames = [
        metrics_by_length(
            read_parquet(paths["predictions"], ["estimator", "split", "example_id", "probability"]),
            read_parquet(paths["labels"], ["example_id", "correct"]),
            read_parquet(paths["scores"], needed=["example_id"]),
            read_parquet(paths["features"], ["example_id", "length"]),
            model=model,
            task=task,
            **settings,
        )
        for model, task, paths in files.by_pair("predictions", "labels", "scores", "features")
    ]
    return pl.concat([pl.DataFrame(schema=STRATIFIED), *frames])


def strata(lengths: pl.DataFrame) -> pl.DataFrame:
    """`example_id` and `stratum` of answers with their `length`.

    >>> lengths = pl.DataFrame({"example_id": ["a", "b", "c"], "length": [9, 2, 5]})
    >>> strata(lengths)["stratum"].to_list()
    ['long', 'short', 'medium']
    """
    twice_rank = (2 * pl.col("length").rank("average")).cast(pl.Int64)
    third = (len(STRATA) * (twice_rank - 1)) // (2 * pl.len())
    names = pl.Series(STRATA)
    return lengths.select("example_id", stratum=pl.lit(names).gather(third))


def metrics_by_length(
    predictions: pl.DataFrame,
    answers: pl.DataFrame,
    scores: pl.DataFrame,
    lengths: pl.DataFrame,
    **settings: Any,
) -> pl.DataFrame:
    """`all_metrics` for each stratum of the evaluated answers; `lengths` covers every answer."""
    settings["splits"] = predictions["split"].unique().sort().to_list()
    divided = strata(lengths)
    return metrics_by("stratum", STRATA, divided, predictions, answers, scores, **settings)
