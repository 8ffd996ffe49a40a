"""Metrics of TRACE at other values of its hyperparameters, and of TRACE+ under other penalties."""

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from trace_workflow.analyses.averages import average_repetitions
from trace_workflow.analyses.operator_variants import PERMUTED
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.calibration.metrics import METRICS, all_metrics
from tracecal.calibration.predictions import calibrate_all
from tracecal.calibration.regression import Method

KEYS = ("setting", "level", "metric")
# The setting of TRACE+. Its levels are C, as in scikit-learn, the inverse penalty; without any the
# weights of separable answers are infinite, so the last is all but none.
PENALTY = "penalty"
PENALTIES = {0.1: 10.0, 1.0: 1.0, 10.0: 0.1, math.inf: 1e-6}


def analysis(
    files: StudyFiles, method: Method, ece_bins: int, trace_plus: Sequence[str]
) -> pl.DataFrame:
    """`hyperparameter_sensitivity` of the pairs; `trace_plus` names the features of TRACE+."""
    return hyperparameter_sensitivity(
        files.read("operators", ["example_id", "setting", "level", "score"]),
        files.labels(),
        files.splits(),
        files.read("features", ["example_id", *trace_plus]),
        method,
        ece_bins,
    )


def hyperparameter_sensitivity(
    operators: pl.DataFrame,
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    features: pl.DataFrame,
    method: Method,
    ece_bins: int,
) -> pl.DataFrame:
    """Every metric of every setting, per task and averaged over them (`task` None).

    Each setting's score is calibrated on every split like an estimator's, then measured.
    `operators` holds `model`, `task`, `example_id`, `setting`, `level` and `score`; `answers`,
    `splits` and `features` (TRACE+'s, perhaps none) begin with the same three columns. Columns
    `task`, `setting`, `level` (None for the default), `metric` and those of `average_repetitions`.
    """
    variants = operators.filter(pl.col("setting") != PERMUTED)
    metrics = []
    for (model, task), scores in variants.group_by("model", "task"):
        pair = {"model": model, "task": task}
        labels = answers.filter(**pair).select("example_id", "correct")
        parts = splits.filter(**pair)
        settings = pair | {"ece_bins": ece_bins}
        metrics.append(_measure_settings(scores, labels, parts, method, **settings))
        columns = features.filter(**pair).drop("model", "task")
        metrics.append(_measure_penalties(columns, labels, parts, method, **settings))
    return average_repetitions(pl.concat(metrics, how="diagonal"), KEYS, over="split")


def _measure_penalties(
    features: pl.DataFrame,
    labels: pl.DataFrame,
    splits: pl.DataFrame,
    method: Method,
    **settings: Any,
) -> pl.DataFrame:
    """The metrics of TRACE+ under each of PENALTIES."""
    names = features.drop("example_id").columns
    answers = features.join(labels, on="example_id", how="inner", validate="1:1")
    numbers = splits["split"].unique().sort().to_list()
    frames = [pl.DataFrame(schema=METRICS | {"setting": pl.String, "level": pl.Float64})]
    for level, penalty in PENALTIES.items() if names else ():
        predictions, _ = calibrate_all(answers, splits, {PENALTY: names}, method, (), penalty)
        no_scores = labels.select("example_id")
        metrics = all_metrics(
            predictions, labels, no_scores, estimators=[PENALTY], splits=numbers, **settings
        )
        frames.append(metrics.with_columns(setting=pl.lit(PENALTY), level=pl.lit(level)))
    return pl.concat(frames)


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
