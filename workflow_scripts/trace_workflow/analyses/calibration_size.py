"""How many labelled answers calibration needs (paper, appendix, "Robustness and Reliability").

The seeded order of every split stays as it is and only the share that calibrates varies, so that a
larger calibration part holds the smaller ones. The evaluation part is the rest, and so differs from
size to size.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from trace_workflow.analyses.study_files import Pairs, Paths
from tracecal.calibration.fits import Method
from tracecal.calibration.metrics import METRICS, all_metrics
from tracecal.calibration.predictions import calibrate_all, raw_scores, read_answers
from tracecal.calibration.splits import cut
from tracecal.io.files import read_parquet

SHARES = (0.05, 0.10, 0.20, 0.35, 0.50)
SIZES = {"calibration_share": pl.Float64, **METRICS}


def analysis(
    labels: Paths,
    scores: Paths,
    features: Paths,
    splits: Paths,
    questions: Paths,
    pairs: Pairs,
    **settings: Any,
) -> pl.DataFrame:
    """`metrics_by_size` of each of `pairs`, from their files, with its `settings`."""
    answers = map(read_answers, labels, questions, scores, features)
    ranks = (read_parquet(path, ["example_id", "split", "rank"]) for path in splits)
    frames = [
        metrics_by_size(frame, rank, model=model, task=task, **settings)
        for (model, task), frame, rank in zip(pairs, answers, ranks, strict=True)
    ]
    return pl.concat([pl.DataFrame(schema=SIZES), *frames])


def metrics_by_size(
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    *,
    estimators: Mapping[str, Sequence[str]],
    method: Method,
    share: float,
    **settings: Any,
) -> pl.DataFrame:
    """`all_metrics` with its `settings`, for the paper's calibration shares and the run's `share`.

    `answers` is as `read_answers` returns it, `splits` has `example_id`, `split` and `rank`.
    """
    labelled, scores = answers.select("example_id", "correct"), raw_scores(answers)
    frames = []
    for size in sorted({*SHARES, share}):
        predictions, _ = calibrate_all(answers, cut(splits, size), estimators, method)
        metrics = all_metrics(
            predictions,
            labelled,
            scores,
            estimators=list(estimators),
            splits=splits["split"].unique().sort().to_list(),
            **settings,
        )
        frames.append(metrics.select(pl.lit(size).alias("calibration_share"), *METRICS))
    return pl.concat(frames)
