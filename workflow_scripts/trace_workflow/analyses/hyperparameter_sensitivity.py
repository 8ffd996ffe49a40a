"""Metrics of TRACE where one of its hyperparameters takes another value, and of TRACE+ where its
penalty does.
"""

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from trace_workflow.analyses.averages import repeated
from trace_workflow.analyses.operator_variants import PERMUTED
from trace_workflow.analyses.study_files import Pairs, Paths, read_labels, read_pairs, read_splits
from tracecal.calibration.fits import Method
from tracecal.calibration.metrics import METRICS, all_metrics
from tracecal.calibration.predictions import calibrate_all

KEYS = ("setting", "level", "metric")
# The setting of TRACE+. Its levels are C, as in scikit-learn, the inverse penalty; without any the
# weights of separable answers are infinite, so the last is all but none.
PENALTY = "penalty"
LEVELS = {0.1: 10.0, 1.0: 1.0, 10.0: 0.1, math.inf: 1e-6}


def analysis(
    operators: Paths,
    labels: Paths,
    splits: Paths,
    features: Paths,
    pairs: Pairs,
    method: Method,
    ece_bins: int,
    trace_plus: Sequence[str],
) -> pl.DataFrame:
    """`hyperparameter_sensitivity` from the files of `pairs`; `trace_plus` names its features."""
    return hyperparameter_sensitivity(
        read_pairs(operators, pairs, ["example_id", "setting", "level", "score"]),
        read_labels(labels, pairs),
        read_splits(splits, pairs),
        read_pairs(features, pairs, ["example_id", *trace_plus]),
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
    """Every metric of every setting, per task and averaged over them (`task` null).

    Each setting's score is calibrated on every split like an estimator's, then measured.
    `operators` holds `model`, `task`, `example_id`, `setting`, `level` and `score`; `answers`,
    `splits` and `features` (TRACE+'s, perhaps none) begin with the same three columns. Columns
    `task`, `setting`, `level` (null for the default), `metric` and those of `repeated`.
    """
    varied = operators.filter(pl.col("setting") != PERMUTED)
    metrics = []
    for (model, task), scores in varied.group_by("model", "task"):
        own = {"model": model, "task": task}
        labelled = answers.filter(**own).select("example_id", "correct")
        parts = splits.filter(**own)
        settings = own | {"ece_bins": ece_bins}
        metrics.append(_metrics_of(scores, labelled, parts, method, **settings))
        measured = features.filter(**own).drop("model", "task")
        metrics.append(_of_penalties(measured, labelled, parts, method, **settings))
    return repeated(pl.concat(metrics, how="diagonal"), KEYS, over="split")


def _of_penalties(
    features: pl.DataFrame,
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    method: Method,
    **settings: Any,
) -> pl.DataFrame:
    """The metrics of TRACE+ under each penalty of LEVELS."""
    names = features.drop("example_id").columns
    labelled = features.join(answers, on="example_id", how="inner", validate="1:1")
    numbers = splits["split"].unique().sort().to_list()
    frames = [pl.DataFrame(schema=METRICS | {"setting": pl.String, "level": pl.Float64})]
    for level, penalty in LEVELS.items() if names else ():
        predictions, _ = calibrate_all(labelled, splits, {PENALTY: names}, method, (), penalty)
        unscored = answers.select("example_id")
        metrics = all_metrics(
            predictions, answers, unscored, estimators=[PENALTY], splits=numbers, **settings
        )
        frames.append(metrics.with_columns(setting=pl.lit(PENALTY), level=pl.lit(level)))
    return pl.concat(frames)


def _metrics_of(
    scores: pl.DataFrame,
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    method: Method,
    **settings: Any,
) -> pl.DataFrame:
    """The metrics of each setting in each split; a setting is treated as an estimator."""
    with_names = scores.with_columns(
        estimator=pl.concat_str("setting", "level", separator=" ", ignore_nulls=True)
    )
    wide = with_names.pivot("estimator", index="example_id", values="score")
    levels = with_names.select("estimator", "setting", "level").unique().sort("setting", "level")
    names = levels["estimator"].to_list()
    labelled = wide.join(answers, on="example_id", how="left", validate="1:1")
    predictions, _ = calibrate_all(labelled, splits, {name: [name] for name in names}, method)
    # One setting at a time: joining every prediction to the scores of all would fill the memory.
    metrics = pl.concat(
        all_metrics(
            predictions.filter(estimator=name),
            answers,
            wide.select("example_id", name),
            estimators=[name],
            splits=splits["split"].unique().sort().to_list(),
            **settings,
        )
        for name in names
    )
    return metrics.join(levels, on="estimator", validate="m:1")
