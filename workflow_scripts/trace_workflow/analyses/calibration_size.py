"""How many labelled answers calibration needs (paper, appendix, "Robustness and Reliability").

The seeded order of every split stays as it is and only the share that calibrates varies, so that a
larger calibration part holds the smaller ones. The evaluation part is the rest, and so differs from
size to size.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from trace_workflow.analyses.labelled_answers import raw_scores, read_labelled_answers
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.fits.predictions import calibrate_all
from tracecal.fits.regression import Method
from tracecal.io.files import read_parquet
from tracecal.statistics.metrics import METRICS, all_metrics
from tracecal.statistics.splits import cut

SHARES = (0.05, 0.10, 0.20, 0.35, 0.50)
METRICS_BY_SIZE = {"calibration_share": pl.Float64, **METRICS}


def analysis(files: StudyFiles, **settings: Any) -> pl.DataFrame:
    """`metrics_by_size` of each pair; the settings are its keyword arguments."""
    frames = [pl.DataFrame(schema=METRICS_BY_SIZE)]
    for model, task, paths in files.by_pair("labels", "questions", "scores", "features", "splits"):
        splits = read_parquet(paths.pop("splits"), ["example_id", "split", "rank"])
        answers = read_labelled_answers(*paths.values())
        frames.append(metrics_by_size(answers, splits, model=model, task=task, **settings))
    return pl.concat(frames)


def metrics_by_size(
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    *,
    estimators: Mapping[str, Sequence[str]],
    method: Method,
    share: float,
    **settings: Any,
) -> pl.DataFrame:
    """`all_metrics` at the paper's calibration shares and at the run's `share`.

    `answers` is as `read_labelled_answers` returns it; `splits` has `example_id`, `split` and
    `rank`; the settings are those of `all_metrics`.
    """
    labels, scores = answers.select("example_id", "correct"), raw_scores(answers)
    frames = []
    for size in sorted({*SHARES, share}):
        predictions, _ = calibrate_all(answers, cut(splits, size), estimators, method)
        metrics = all_metrics(
            predictions,
            labels,
            scores,
            estimators=list(estimators),
            splits=splits["split"].unique().sort().to_list(),
            **settings,
        )
        frames.append(metrics.select(pl.lit(size).alias("calibration_share"), *METRICS))
    return pl.concat(frames)
