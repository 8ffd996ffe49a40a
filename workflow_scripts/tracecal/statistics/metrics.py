"""Metrics of a model on a task: its accuracy, and the metrics of all estimators and splits.

1. `accuracy_row` counts right answers, `accuracy_by_language` does so for each language.
2. `all_metrics` measures the predictions, as one frame.
3. `metrics_by` measures parts of the evaluation by themselves, `metrics_by_language` each language.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from tracecal.statistics.probability_metrics import brier, ece, ece_debiased, nll
from tracecal.statistics.ranking_metrics import aurc, auroc, prr, wrong_by_rank

ACCURACY = {
    "model": pl.String,
    "task": pl.String,
    "n": pl.Int64,
    "correct": pl.Int64,
    "accuracy": pl.Float64,
    "unanswered": pl.Int64,
    "without_entropy": pl.Int64,
    "cut": pl.Int64,
}
METRICS = {
    "model": pl.String,
    "task": pl.String,
    "estimator": pl.String,
    "split": pl.Int64,
    "metric": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
}
NAMES = ("aurc", "auroc", "auroc_calibrated", "brier", "ece", "ece_debiased", "nll", "prr")
# Answers measured at once, in sets of equal size, so that they stay in the processor's cache.
BLOCK = 2**16


def accuracy_row(
    labelled: pl.DataFrame, questions: pl.DataFrame, model: str, task: str
) -> pl.DataFrame:
    """Count evaluation answers with a Boolean column `correct` (columns of `ACCURACY`).

    `questions` are the task's rows. Those without an answer in the file, and parts that answers
    lack, have the role 'unanswered'; they are among the `n` where `counts_as_wrong`. `lacks` says
    why an answer has no entropies. Where the answers have a column `finish_reason`, those that
    ended at the limit of tokens are counted as `cut`.
    """
    unanswered = questions.filter(role="unanswered")
    n, correct = labelled.height, int(labelled["correct"].sum())
    if "counts_as_wrong" in questions.columns:
        n += int(unanswered["counts_as_wrong"].sum())
    n_lacking = 0
    if "lacks" in questions.columns:
        n_lacking = questions.filter(role="evaluation")["lacks"].count()
    n_cut = 0
    if "finish_reason" in labelled.columns:
        n_cut = labelled.filter(finish_reason="length").height
    row = (model, task, n, correct, correct / n, unanswered.height, n_lacking, n_cut)
    return pl.DataFrame([row], schema=ACCURACY, orient="row")


def accuracy_by_language(
    labelled: pl.DataFrame, questions: pl.DataFrame, model: str, task: str
) -> pl.DataFrame:
    """`accuracy_row` of each `language`; no row where there is only one.

    `questions` are the task's rows with `example_id`, `role` and `language`.
    """
    languages = questions.select("example_id", "language")
    labelled = labelled.join(languages, on="example_id", validate="1:1")
    by_language = labelled.partition_by("language", as_dict=True)
    rows = [pl.DataFrame(schema=ACCURACY | {"language": pl.String})]
    for (language,) in sorted(by_language) if len(by_language) > 1 else ():
        in_language = questions.filter(language=language)
        row = accuracy_row(by_language[language,], in_language, model, task)
        rows.append(row.with_columns(language=pl.lit(language)))
    return pl.concat(rows)


def all_metrics(
    predictions: pl.DataFrame,
    answers: pl.DataFrame,
    scores: pl.DataFrame,
    *,
    model: str,
    task: str,
    estimators: Sequence[str],
    splits: Sequence[int],
    ece_bins: int,
) -> pl.DataFrame:
    """Measure each estimator on the evaluation part of each split: a row per metric (`METRICS`).

    `answers` has `example_id` and `correct`. The ranking metrics 'auroc', 'aurc' and 'prr' use the
    estimator's column of `scores` where there is one, else the probability, which
    'auroc_calibrated' ranks for every estimator. `n` counts the answers with a prediction; without
    any, all values are missing. Sorted by estimator, split and metric.
    """
    estimators, splits = sorted(estimators), sorted(splits)
    answers = answers.join(scores, on="example_id", how="left", validate="1:1").sort("example_id")
    sets, example, probability = _index(predictions, answers["example_id"], estimators, splits)
    correct = answers["correct"].to_numpy()[example]
    ranking = probability.copy()
    for number, estimator in enumerate(estimators):
        if estimator in scores.columns:
            rows = slice(*np.searchsorted(sets, [number * len(splits), (number + 1) * len(splits)]))
            ranking[rows] = answers[estimator].cast(pl.Float64).to_numpy()[example[rows]]
    counts = np.bincount(sets, minlength=len(estimators) * len(splits))
    starts = np.cumsum(counts) - counts
    values = np.full((len(counts), len(NAMES)), np.nan)
    for n in np.unique(counts[counts > 0]):
        equal_sets = np.flatnonzero(counts == n)
        for block in np.array_split(equal_sets, math.ceil(len(equal_sets) * n / BLOCK)):
            rows = starts[block, None] + np.arange(n)
            metrics = _measure(probability[rows], ranking[rows], correct[rows], ece_bins)
            values[block] = np.column_stack([metrics[name] for name in NAMES])
    keys = list(product([model], [task], estimators, splits, NAMES))
    schema = {name: METRICS[name] for name in ("model", "task", "estimator", "split", "metric")}
    return pl.DataFrame(keys, schema=schema, orient="row").with_columns(
        value=pl.Series(values.ravel(), nan_to_null=True),
        n=pl.Series(np.repeat(counts, len(NAMES))).cast(pl.Int64),
    )


def metrics_by(
    column: str,
    parts: Iterable[str],
    divided: pl.DataFrame,
    predictions: pl.DataFrame,
    answers: pl.DataFrame,
    scores: pl.DataFrame,
    **settings: Any,
) -> pl.DataFrame:
    """`all_metrics` with its `settings` for each of `parts`, the values of `column` in `divided`.

    `divided` has `example_id` and `column`; the result has `column`, too. Only the evaluation is
    divided: the probabilities stay.
    """
    frames = [pl.DataFrame(schema={column: pl.String, **METRICS})]
    for part in parts:
        members = divided.filter(pl.col(column) == part)
        part_predictions = predictions.join(members, on="example_id", how="semi")
        metrics = all_metrics(part_predictions, answers, scores, **settings)
        frames.append(metrics.select(pl.lit(part).alias(column), *METRICS))
    return pl.concat(frames)


def metrics_by_language(
    predictions: pl.DataFrame, answers: pl.DataFrame, scores: pl.DataFrame, **settings: Any
) -> pl.DataFrame:
    """`metrics_by` for each `language` of `answers`; no row where there is only one."""
    languages = answers["language"].unique().sort()
    parts = languages if len(languages) > 1 else []
    labelled = answers.drop("language")
    return metrics_by("language", parts, answers, predictions, labelled, scores, **settings)


def _index(
    predictions: pl.DataFrame, ids: pl.Series, estimators: Sequence[str], splits: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the set, the example and the probability of each prediction, sorted by both.

    Sets are numbered by estimator and split, examples by their index in `ids`.
    """
    selected = pl.col("estimator").is_in(estimators) & pl.col("split").is_in(splits)
    coded = predictions.filter(selected).select(
        pl.col("estimator").cast(pl.Enum(estimators)).to_physical(),
        pl.col("split").cast(pl.Int64),
        pl.col("example_id").cast(pl.Enum(ids)).to_physical().alias("example"),
        "probability",
    )
    estimator, split, example, probability = (column.to_numpy() for column in coded)
    sets = estimator.astype(np.int64) * len(splits) + np.searchsorted(splits, split)
    key = sets * len(ids) + example
    order = np.argsort(key) if (np.diff(key) < 0).any() else slice(None)
    return sets[order], example[order], probability[order]


def _measure(
    probability: np.ndarray, ranking: np.ndarray, correct: np.ndarray, ece_bins: int
) -> dict[str, np.ndarray]:
    """Each metric [sets] of arrays [sets, answers]."""
    by_rank = wrong_by_rank(ranking, correct)
    return {
        "aurc": aurc(by_rank),
        "auroc": auroc(by_rank),
        "auroc_calibrated": auroc(wrong_by_rank(probability, correct)),
        "brier": brier(probability, correct),
        "ece": ece(probability, correct, ece_bins),
        "ece_debiased": ece_debiased(probability, correct, ece_bins),
        "nll": nll(probability, correct),
        "prr": prr(by_rank),
    }
