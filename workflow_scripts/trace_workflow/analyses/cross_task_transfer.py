"""Calibration without labels of the target task (paper, section 4, "Cross-task calibration").

For each target, and in each split, every estimator is fitted on the pooled calibration parts of
the other tasks and measured on the target's own evaluation part. The paper leaves open which
source answers calibrate. Here they are the calibration parts, not all labelled answers, so that
only the tasks differ from the main comparison: each contributes as many labels as it would there,
and the spread over splits still includes that of the fit.

Scores without a fit are ranked by themselves, as in the main comparison: a fitted one-feature
logistic map keeps their order, or reverses it where the sources give its weight the other sign,
which reflects the sources and not the score. Brier scores show the full effect of the transfer,
including that sign, and so does the AUROC of learned estimators. The paper's numbers do not show
how it ranked: its best transferred baselines have an AUROC of 0.843 on SVAMP and 0.644 on
TruthfulQA, where raw scores of its main comparison reach 0.887 and 0.661, and of 0.835 on TriviaQA,
which none of those scores reaches (0.822), even with its order reversed.

Tasks may ask about the same country or person. In a split no answer calibrates whose group the
target evaluates there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from trace_workflow.analyses.averages import averages
from trace_workflow.analyses.gains import gains
from trace_workflow.analyses.improvements import improvements
from trace_workflow.analyses.labelled_answers import raw_scores, read_labelled_answers
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.estimators.estimator import PICKED
from tracecal.fits.predictions import calibrate_all, pick_baselines, with_picked
from tracecal.fits.regression import Method
from tracecal.statistics.metrics import METRICS, all_metrics
from tracecal.statistics.resampling import RESAMPLES, resample_metrics

KEYS, GROUP_KEYS = ("split", "example_id"), ("split", "group_id")
ID = pl.concat_str("task", "example_id", separator="/")


def analysis(
    files: StudyFiles,
    studies: Mapping[str, Mapping],
    named_baseline: str,
    bootstrap: Sequence[float],
    **settings: Any,
) -> pl.DataFrame:
    """The `improvements` on each target; the settings are those of `measure_on_targets`."""
    seed, resamples, level = bootstrap
    answers = pl.concat(
        read_labelled_answers(*paths.values()).with_columns(task=pl.lit(task))
        for _, task, paths in files.by_pair("labels", "questions", "scores", "features")
    )
    settings |= {"model": studies["main"]["model"], "seed": seed, "resamples": resamples}
    metrics, resampled = measure_on_targets(answers, files.splits(), **settings)
    gain_rows = gains(averages(metrics, studies), settings["baselines"], named_baseline)
    return improvements(gain_rows, resampled, named_baseline, studies, level)


def measure_on_targets(
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    *,
    model: str,
    estimators: Mapping[str, Sequence[str]],
    baselines: Sequence[str],
    method: Method,
    ece_bins: int,
    seed: int,
    resamples: int,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Measure every task of `answers` as the target: `all_metrics` and `resample_metrics`.

    Both frames have a column `task`; an `example_id` need be unique only within a task. The
    resamples are those of the main comparison. With a single task there is no row.
    """
    answers, splits = (frame.with_columns(example_id=ID) for frame in (answers, splits))
    grouped = splits.join(answers.select("example_id", "group_id"), on="example_id")
    tasks = sorted(set(answers["task"]))
    metrics, resampled = [pl.DataFrame(schema=METRICS)], [pl.DataFrame(schema=RESAMPLES)]
    for target in tasks if len(tasks) > 1 else []:
        evaluated_groups = grouped.filter(task=target, part="evaluation").select(*GROUP_KEYS)
        in_groups = grouped.join(evaluated_groups.unique(), on=GROUP_KEYS, how="semi").select(KEYS)
        target_rows = grouped.filter(task=target).select(KEYS)
        excluded = pl.concat([in_groups, target_rows]).unique()
        sources = splits.join(excluded, on=KEYS, how="anti")
        predictions, calibrators = calibrate_all(answers, sources, estimators, method)
        picked = pick_baselines(answers, sources, estimators, calibrators, baselines)
        evaluated = splits.filter(task=target, part="evaluation").select(
            pl.col("split").cast(pl.Int64), "example_id"
        )
        target_predictions = with_picked(predictions, picked).join(evaluated, on=KEYS, how="semi")
        target_answers = answers.filter(task=target)
        scope = {"model": model, "task": target, "estimators": [*estimators, PICKED]}
        target_metrics = all_metrics(
            target_predictions,
            target_answers.select("example_id", "correct"),
            raw_scores(target_answers),
            splits=evaluated["split"].unique().sort().to_list(),
            ece_bins=ece_bins,
            **scope,
        )
        target_resamples = resample_metrics(
            target_predictions,
            target_answers.select("example_id", "group_id", "correct"),
            raw_scores(target_answers),
            seed=seed,
            resamples=resamples,
            **scope,
        )
        metrics.append(target_metrics)
        resampled.append(target_resamples)
    return pl.concat(metrics), pl.concat(resampled)
