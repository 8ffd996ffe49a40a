"""How many labels do fits need? TRACE+, the fits for few labels and baselines at fixed numbers.

In the seeded order of each split the first groups with 20, 50, 100 and 200 answers calibrate, and
the answers beyond the largest size evaluate, the same for all sizes of a task. A task counts at
sizes of at most half its answers. The selected baseline has the
smallest log loss on the calibration part (`tracecal.fits.predictions`); the oracle is the
best average of all baselines, by each metric: a point without an interval.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from trace_workflow.analyses.gains import SIGNS
from trace_workflow.analyses.improvements import signed_values
from trace_workflow.analyses.labelled_answers import raw_scores, read_labelled_answers
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.estimators.estimator import TRACE_PLUS, OwnFit
from tracecal.fits.predictions import calibrate_all, pick_baselines, with_picked
from tracecal.fits.regression import Method
from tracecal.io.files import read_parquet
from tracecal.statistics.resampling import RESAMPLES, interval, resample_metrics

SIZES = (20, 50, 100, 200)
METRICS = ("brier", "auroc")
ORACLE = "oracle"
FEW_LABELS = {
    "labels": pl.Int64,
    **dict.fromkeys(("model", "task", "estimator", "metric"), pl.String),
    **dict.fromkeys(("value", "difference", "low", "high", "level"), pl.Float64),
    "tasks": pl.Int64,
    "n": pl.Float64,
}
RESAMPLES_BY_SIZE = {"labels": pl.Int64, "n": pl.Float64} | RESAMPLES


def analysis(files: StudyFiles, level: float, **settings: Any) -> pl.DataFrame:
    """`few_labels` of the pairs, the tasks of one model; settings are those of `resample_sizes`."""
    frames = []
    for model, task, paths in files.by_pair("labels", "questions", "scores", "features", "splits"):
        splits = read_parquet(paths.pop("splits"), ["example_id", "split", "rank"])
        answers = read_labelled_answers(*paths.values())
        frames.append(resample_sizes(answers, splits, model=model, task=task, **settings))
    return few_labels(pl.concat(frames), settings["row_ids"], settings["baselines"], level)


def resample_sizes(
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    *,
    model: str,
    task: str,
    estimators: Mapping[str, Sequence[str]],
    own_fits: Mapping[str, OwnFit],
    row_ids: Sequence[str],
    baselines: Sequence[str],
    method: Method,
    seed: int,
    resamples: int,
) -> pl.DataFrame:
    """RESAMPLES at each size, after `labels`, the size, and `n` answers evaluated in a split.

    `answers` is as `read_labelled_answers` returns it; `splits` has `example_id`, `split` and
    `rank`. The estimators `row_ids` are resampled; the other `baselines` are measured once.
    """
    labels, scores = answers.select("example_id", "group_id", "correct"), raw_scores(answers)
    sizes = [size for size in SIZES if size <= answers.height / 2]
    further = [name for name in baselines if name not in row_ids]
    frames = [pl.DataFrame(schema=RESAMPLES_BY_SIZE)]
    for size in sizes:
        parts = split_at_size(splits, size, sizes[-1])
        predictions, fits = calibrate_all(answers, parts, estimators, method, own_fits)
        picked = pick_baselines(answers, parts, estimators, fits, baselines)
        evaluated = parts.filter(part="evaluation").select("split", "example_id")
        tested = with_picked(predictions, picked).join(
            evaluated, on=["split", "example_id"], how="semi", maintain_order="left"
        )
        n_evaluated = evaluated.height / splits["split"].n_unique()
        for names, n_resamples in ((row_ids, resamples), (further, 0)):
            resampled = resample_metrics(
                *(tested, labels, scores),
                model=model,
                task=task,
                estimators=names,
                seed=seed,
                resamples=n_resamples,
            )
            frames.append(
                resampled.select(
                    pl.lit(size).cast(pl.Int64).alias("labels"),
                    pl.lit(n_evaluated).alias("n"),
                    *RESAMPLES,
                )
            )
    return pl.concat(frames)


def split_at_size(splits: pl.DataFrame, size: int, largest: int) -> pl.DataFrame:
    """The splits, divided anew in their seeded order.

    The first groups that hold `size` answers are the part 'calibration', the groups beyond
    `largest` answers the part 'evaluation'; answers between them are left out.
    """
    groups = splits.group_by("split", "rank").len().sort("split", "rank")
    before = pl.col("len").cum_sum().over("split") - pl.col("len")
    part = pl.when(before < size).then(pl.lit("calibration"))
    part = part.when(before >= largest).then(pl.lit("evaluation"))
    parts = groups.select("split", "rank", part=part).drop_nulls("part")
    ranks = splits.select("example_id", "split", "rank")
    return ranks.join(parts, on=["split", "rank"], maintain_order="left")


def few_labels(
    resampled: pl.DataFrame, row_ids: Sequence[str], baselines: Sequence[str], level: float
) -> pl.DataFrame:
    """A row per size, metric and estimator for each task, and without `task` for their mean.

    `resampled` has the rows of `resample_sizes` for one model's tasks. `difference` is the
    advantage of TRACE+, with the interval that holds `level`; `tasks` counts the tasks behind a
    row, and `n` the evaluated answers.
    """
    rows = []
    groups = (
        resampled.filter(pl.col("metric").is_in(METRICS))
        .sort("labels", "metric", "task")
        .group_by("labels", "metric", "model", maintain_order=True)
    )
    for (size, metric, model), group in groups:
        sign = SIGNS[metric]
        by_task = {task: values for (_, task), values in signed_values(group, sign).items()}
        n_evaluated = dict(group.group_by("task").agg(pl.col("n").first()).iter_rows())
        scopes = {task: [task] for task in by_task} | {None: list(by_task)}
        for task, members in scopes.items():
            means = {
                name: np.mean([by_task[member][name] for member in members], axis=0)
                for name in {*row_ids, *baselines}
            }
            best = max((means[name][:1] for name in baselines), key=np.nan_to_num)
            n = sum(n_evaluated[member] for member in members)
            for name, values in [*((name, means[name]) for name in row_ids), (ORACLE, best)]:
                difference = means[TRACE_PLUS][: len(values)] - values
                low, high, _ = interval(difference[1:], level)
                bounds = (sign * values[0], difference[0], low, high, level)
                rows.append((size, model, task, name, metric, *bounds, len(members), n))
    return pl.DataFrame(rows, schema=FEW_LABELS, orient="row", nan_to_null=True)
