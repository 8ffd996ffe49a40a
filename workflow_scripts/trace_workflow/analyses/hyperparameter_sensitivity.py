"""Metrics of TRACE at other values of its hyperparameters."""

from typing import Any

import polars as pl

from trace_workflow.analyses.averages import average_repetitions
from trace_workflow.analyses.operator_variants import PERMUTED
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.fits.predictions import calibrate_all
from tracecal.fits.regression import Method
from tracecal.statistics.metrics import all_metrics

KEYS = ("setting", "level", "metric")


def analysis(files: StudyFiles, method: Method, ece_bins: int) -> pl.DataFrame:
    """`hyperparameter_sensitivity` of the pairs."""
    operators = files.read("operators", ["example_id", "setting", "level", "score"])
    return hyperparameter_sensitivity(operators, files.labels(), files.splits(), method, ece_bins)


def hyperparameter_sensitivity(
    operators: pl.DataFrame,
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    method: Method,
    ece_bins: int,
) -> pl.DataFrame:
    """Every metric of every setting, per task and averaged over them (`task` None).

    Each setting's score is calibrated on every split like an estimator's, then measured.
    `operators` holds `model`, `task`, `example_id`, `setting`, `level` and `score`; `answers`
    and `splits` begin with the same three columns. Columns `task`, `setting`, `level` (None for the
    default), `metric` and those of `average_repetitions`.
    """
    variants = operators.filter(pl.col("setting") != PERMUTED)
    metrics = []
    for (model, task), scores in variants.group_by("model", "task"):
        pair = {"model": model, "task": task}
        labels = answers.filter(**pair).select("example_id", "correct")
        parts = splits.filter(**pair)
        rows = _measure_settings(scores, labels, parts, method, **pair, ece_bins=ece_bins)
        metrics.append(rows)
    return average_repetitions(pl.concat(metrics), KEYS, over="split")


def _measure_settings(
    scores: pl.DataFrame,
    labels: pl.DataFrame,
    splits: pl.DataFrame,
    method: Method,
    **settings: Any,
) -> pl.DataFrame:
    """The metrics of each setting in each split; a setting is treated as an estimator."""
    with_names = scores.with_columns(
        estimator=pl.concat_str("setting", "level", separator=" ", ignore_nulls=True)
    )
    columns = with_names.pivot("estimator", index="example_id", values="score")
    levels = with_names.select("estimator", "setting", "level").unique().sort("setting", "level")
    names = levels["estimator"].to_list()
    answers = columns.join(labels, on="example_id", how="left", validate="1:1")
    predictions, _ = calibrate_all(answers, splits, {name: [name] for name in names}, method)
    # Setting by setting: joining every prediction to the scores of all would fill the memory.
    metrics = pl.concat(
        all_metrics(
            predictions.filter(estimator=name),
            labels,
            columns.select("example_id", name),
            estimators=[name],
            splits=splits["split"].unique().sort().to_list(),
            **settings,
        )
        for name in names
    )
    return metrics.join(levels, on="estimator", validate="m:1")
