"""The metrics of all estimators and splits."""

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from tracecal.calibration.calibration_error import ece, ece_debiased
from tracecal.calibration.proper_scores import brier, nll
from tracecal.calibration.ranking import aurc, auroc, prr, wrong_by_rank

METRICS = {
    "model": pl.String,
    "task": pl.String,
    "estimator": pl.String,
    "split": pl.Int64,
    "metric": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
}
# Answers processed together, in sets of equal size, so that they stay in the processor's cache.
BLOCK = 2**16

NAMES = ("aurc", "auroc", "auroc_calibrated", "brier", "ece", "ece_debiased", "nll", "prr")


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
    """One row per estimator, split and metric, over the split's evaluation part.

    `answers` holds `example_id` and `correct`. The ranking metrics 'auroc', 'aurc' and 'prr' use
    the estimator's column of `scores` where there is one, else the probability, which
    'auroc_calibrated' ranks for every estimator. `n` counts the answers with a prediction; where
    there are none, every value is null. Sorted by estimator, split and metric.
    """
    names, numbers = sorted(estimators), sorted(splits)
    answers = answers.join(scores, on="example_id", how="left", validate="1:1").sort("example_id")
    sets, example, probability = _indexed(predictions, answers["example_id"], names, numbers)
    correct = answers["correct"].to_numpy()[example]
    ranking = probability.copy()
    for place, name in enumerate(names):
        if name in scores.columns:
            rows_of_estimator = slice(
                *np.searchsorted(sets, [place * len(numbers), (place + 1) * len(numbers)])
            )
            ranking[rows_of_estimator] = (
                answers[name].cast(pl.Float64).to_numpy()[example[rows_of_estimator]]
            )
    counts = np.bincount(sets, minlength=len(names) * len(numbers))
    starts = np.cumsum(counts) - counts
    values = np.full((len(counts), len(NAMES)), np.nan)
    for n in np.unique(counts[counts > 0]):
        same = np.flatnonzero(counts == n)
        for block in np.array_split(same, math.ceil(len(same) * n / BLOCK)):
            rows = starts[block, None] + np.arange(n)
            metrics = _metrics_of(probability[rows], ranking[rows], correct[rows], ece_bins)
            values[block] = np.column_stack([metrics[name] for name in NAMES])
    keys = list(product([model], [task], names, numbers, NAMES))
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
    """`all_metrics` with its `settings`, for each of `parts`, values of `column` in `divided`.

    `divided` has `example_id` and `column`, as the result has. Only the evaluation is divided; the
    probabilities are the same.
    """
    frames = [pl.DataFrame(schema={column: pl.String, **METRICS})]
    for part in parts:
        own = predictions.join(divided.filter(pl.col(column) == part), on="example_id", how="semi")
        metrics = all_metrics(own, answers, scores, **settings)
        frames.append(metrics.select(pl.lit(part).alias(column), *METRICS))
    return pl.concat(frames)


def metrics_by_language(
    predictions: pl.DataFrame, answers: pl.DataFrame, scores: pl.DataFrame, **settings: Any
) -> pl.DataFrame:
    """`metrics_by` for each `language` of `answers`; no row where there is only one language."""
    languages = answers["language"].unique().sort()
    parts = languages if len(languages) > 1 else []
    labelled = answers.drop("language")
    return metrics_by("language", parts, answers, predictions, labelled, scores, **settings)


def _indexed(
    predictions: pl.DataFrame, ids: pl.Series, names: Sequence[str], numbers: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The number of its set (splits within estimators), the index of its example in `ids` and the
    probability of each prediction for estimators `names` and splits `numbers`; sorted.
    """
    wanted = pl.col("estimator").is_in(names) & pl.col("split").is_in(numbers)
    coded = predictions.filter(wanted).select(
        pl.col("estimator").cast(pl.Enum(names)).to_physical(),
        pl.col("split").cast(pl.Int64),
        pl.col("example_id").cast(pl.Enum(ids)).to_physical().alias("example"),
        "probability",
    )
    estimator, split, example, probability = (column.to_numpy() for column in coded)
    sets = estimator.astype(np.int64) * len(numbers) + np.searchsorted(numbers, split)
    place = sets * len(ids) + example
    order = np.argsort(place) if (np.diff(place) < 0).any() else slice(None)
    return sets[order], example[order], probability[order]


def _metrics_of(
    probability: np.ndarray, ranking: np.ndarray, correct: np.ndarray, ece_bins: int
) -> dict[str, np.ndarray]:
    """Each metric [B] of the sets in the rows of [B, n] arrays."""
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
