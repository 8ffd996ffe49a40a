"""How many labels do fits need? TRACE+, the fits for few labels and baselines at fixed numbers.

In the seeded order of each split the first groups that hold 20, 50, 100 and 200 answers calibrate,
and what the largest size leaves is evaluated, so that all sizes of a task are measured on the same
answers. A task counts at the sizes that are at most half its answers. The selected baseline has the
smallest log loss on the calibration part (`tracecal.calibration.predictions`); the oracle is the
best average of all baselines, by each metric: a point without an interval.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from trace_workflow.analyses.improvements import SIGNS, values_of
from trace_workflow.analyses.study_files import Pairs, Paths
from tracecal.calibration.fits import Method
from tracecal.calibration.predictions import (
    calibrate_all,
    picks,
    raw_scores,
    read_answers,
    with_picked,
)
from tracecal.calibration.resampling import RESAMPLES, interval, resample_metrics
from tracecal.estimators.entry import TRACE_PLUS
from tracecal.estimators.estimator import OwnFit
from tracecal.io.files import read_parquet

SIZES = (20, 50, 100, 200)
METRICS = ("brier", "auroc")
ORACLE = "oracle"
FEW_LABELS = {
    "labels": pl.Int64,
    **dict.fromkeys(("model", "task", "estimator", "metric"), pl.String),
    "value": pl.Float64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "level": pl.Float64,
    "tasks": pl.Int64,
    "n": pl.Float64,
}
MEASURED = {"labels": pl.Int64, "n": pl.Float64} | RESAMPLES


def analysis(
    labels: Paths,
    scores: Paths,
    features: Paths,
    splits: Paths,
    questions: Paths,
    pairs: Pairs,
    level: float,
    **settings: Any,
) -> pl.DataFrame:
    """`few_labels` of `pairs`, the tasks of one model, from their files."""
    rows = []
    for (model, task), split, question, *files in zip(
        pairs, splits, questions, labels, scores, features, strict=True
    ):
        answers = read_answers(files[0], question, *files[1:])
        ranks = read_parquet(split, ["example_id", "split", "rank"])
        rows.append(resampled(answers, ranks, model=model, task=task, **settings))
    return few_labels(pl.concat(rows), settings["shown"], settings["baselines"], level)


def resampled(
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    *,
    model: str,
    task: str,
    estimators: Mapping[str, Sequence[str]],
    own_fits: Mapping[str, OwnFit],
    shown: Sequence[str],
    baselines: Sequence[str],
    method: Method,
    seed: int,
    resamples: int,
) -> pl.DataFrame:
    """RESAMPLES at each size, after `labels`, the size, and `n` answers evaluated in a split.

    `answers` is as `read_answers` returns it; `splits` has `example_id`, `split`
    and `rank`. Only the `shown` estimators are resampled, the other `baselines` just measured.
    """
    labelled, scores = answers.select("example_id", "group_id", "correct"), raw_scores(answers)
    sizes = [size for size in SIZES if size <= answers.height / 2]
    frames = [pl.DataFrame(schema=MEASURED)]
    for size in sizes:
        divided = at_size(splits, size, sizes[-1])
        predictions, fits = calibrate_all(answers, divided, estimators, method, own_fits)
        picked = picks(answers, divided, estimators, fits, baselines)
        evaluated = divided.filter(part="evaluation").select("split", "example_id")
        known = with_picked(predictions, picked).join(
            evaluated, on=["split", "example_id"], how="semi", maintain_order="left"
        )
        others = [name for name in baselines if name not in shown]
        frames += [
            resample_metrics(
                *(known, labelled, scores),
                model=model,
                task=task,
                estimators=names,
                seed=seed,
                resamples=number,
            ).select(
                pl.lit(size).cast(pl.Int64).alias("labels"),
                pl.lit(evaluated.height / splits["split"].n_unique()).alias("n"),
                *RESAMPLES,
            )
            for names, number in ((shown, resamples), (others, 0))
        ]
    return pl.concat(frames)


def at_size(splits: pl.DataFrame, size: int, largest: int) -> pl.DataFrame:
    """`splits` whose `part` is 'calibration' for the first groups that hold `size` answers, and
    'evaluation' for the groups beyond `largest` answers; other answers are left out.
    """
    groups = splits.group_by("split", "rank").len().sort("split", "rank")
    before = pl.col("len").cum_sum().over("split") - pl.col("len")
    part = pl.when(before < size).then(pl.lit("calibration"))
    part = part.when(before >= largest).then(pl.lit("evaluation"))
    parts = groups.select("split", "rank", part=part).drop_nulls("part")
    ranks = splits.select("example_id", "split", "rank")
    return ranks.join(parts, on=["split", "rank"], maintain_order="left")


def few_labels(
    measured: pl.DataFrame, shown: Sequence[str], baselines: Sequence[str], level: float
) -> pl.DataFrame:
    """A row per size, metric and estimator for each task, and without `task` for their mean.

    `measured` has the rows of `resampled` of one model's tasks. `difference` is by how much TRACE+
    is better, with the interval that holds `level`; `tasks` counts those behind a row, and `n` the
    evaluated answers.
    """
    rows = []
    for (size, metric, model), part in (
        measured.filter(pl.col("metric").is_in(METRICS))
        .sort("labels", "metric", "task")
        .group_by("labels", "metric", "model", maintain_order=True)
    ):
        sign = SIGNS[metric]
        by_task = {task: found for (_, task), found in values_of(part, sign).items()}
        numbers = dict(part.group_by("task").agg(pl.col("n").first()).iter_rows())
        scopes = {task: [task] for task in by_task} | {None: list(by_task)}
        for task, members in scopes.items():
            values = {
                name: np.mean([by_task[one][name] for one in members], axis=0)
                for name in {*shown, *baselines}
            }
            best = max((values[name][:1] for name in baselines), key=np.nan_to_num)
            for name, found in [*((one, values[one]) for one in shown), (ORACLE, best)]:
                difference = values[TRACE_PLUS][: len(found)] - found
                low, high, _ = interval(difference[1:], level)
                ends = (sign * found[0], difference[0], low, high, level)
                n = sum(numbers[one] for one in members)
                rows.append((size, model, task, name, metric, *ends, len(members), n))
    return pl.DataFrame(rows, schema=FEW_LABELS, orient="row", nan_to_null=True)
