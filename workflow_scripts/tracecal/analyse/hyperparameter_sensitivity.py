"""Metrics of TRACE where one of its hyperparameters takes another value."""

from typing import Any

import polars as pl

from tracecal.analyse.averages import repeated
from tracecal.analyse.pairs import Pairs, Paths, read_labels, read_pairs, read_splits
from tracecal.calibrate.metrics import all_metrics
from tracecal.calibrate.predict import calibrate_all
from tracecal.calibrate.protocol import Method
from tracecal.operate.sensitivity import PERMUTED

KEYS = ("setting", "level", "metric")


def analysis(
    operators: Paths, labels: Paths, splits: Paths, pairs: Pairs, method: Method, ece_bins: int
) -> pl.DataFrame:
    """`hyperparameter_sensitivity` from the files of `pairs`."""
    return hyperparameter_sensitivity(
        read_pairs(operators, pairs, ["example_id", "setting", "level", "score"]),
        read_labels(labels, pairs),
        read_splits(splits, pairs),
        method,
        ece_bins,
    )


def hyperparameter_sensitivity(
    operators: pl.DataFrame,
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    method: Method,
    ece_bins: int,
) -> pl.DataFrame:
    """Every metric of every setting, per task and averaged over them (`task` null).

    Each setting's score is calibrated on every split like an estimator's, then measured.
    `operators` holds `model`, `task`, `example_id`, `setting`, `level` and `score`; `answers`
    and `splits` begin with the same three columns. Columns `task`, `setting`, `level` (null for
    the default), `metric` and those of `repeated`.
    """
    varied = operators.filter(pl.col("setting") != PERMUTED)
    metrics = [
        _metrics_of(
            scores,
            answers.filter(model=model, task=task).select("example_id", "correct"),
            splits.filter(model=model, task=task),
            method,
            model=model,
            task=task,
            ece_bins=ece_bins,
        )
        for (model, task), scores in varied.group_by("model", "task")
    ]
    return repeated(pl.concat(metrics), KEYS, over="split")


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
