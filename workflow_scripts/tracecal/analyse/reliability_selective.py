"""Predictions pooled over tasks: calibration, ranking and selective prediction (paper, appendix).

Within each split the evaluation parts of all tasks make one set of answers. Its ranking is that of
the calibrated probabilities, unlike elsewhere: raw scores of different tasks have
no common scale, and the most confident answers of several tasks are selected by probability. A
probability reflects its task's base rate, so pooled AUROC is not a mean of AUROCs.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.analyse.pairs import KEYS, Pairs, Paths, read_labels, read_pairs
from tracecal.calibrate.measures import bin_index
from tracecal.calibrate.metrics import auroc, brier, ece, expected_errors

COVERAGES = (10, 50, 90)
PERCENT = np.arange(1, 101)

POOLED = {
    "model": pl.String,
    "tasks": pl.String,
    "estimator": pl.String,
    "split": pl.Int64,
    "metric": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
}
BINS = {
    "estimator": pl.String,
    "split": pl.Int64,
    "bin": pl.Int64,
    "n": pl.Int64,
    "probability": pl.Float64,
    "accuracy": pl.Float64,
}
CURVE = {
    "estimator": pl.String,
    "split": pl.Int64,
    "coverage": pl.Float64,
    "risk": pl.Float64,
}


class Reliability(NamedTuple):
    """Metrics, reliability bins and risk-coverage curve by estimator and split."""

    pooled: pl.DataFrame
    bins: pl.DataFrame
    curve: pl.DataFrame


def analysis(
    predictions: Paths,
    labels: Paths,
    pairs: Pairs,
    estimators: Sequence[str],
    ece_bins: int,
    part: str,
) -> pl.DataFrame:
    """A `part` of the `Reliability` of the predictions in the files of `pairs`."""
    predicted = read_pairs(predictions, pairs, ["estimator", "split", "example_id", "probability"])
    judged = predicted.filter(pl.col("estimator").is_in(estimators)).join(
        read_labels(labels, pairs), on=KEYS, how="left", validate="m:1"
    )
    return getattr(reliability(judged, estimators, ece_bins), part)


def reliability(judged: pl.DataFrame, estimators: Sequence[str], bins: int) -> Reliability:
    """Measure the predictions of one model on all tasks, pooled.

    `judged` has `model`, `task`, `estimator`, `split`, `probability` and `correct`. Metrics are
    ECE over `bins` equal-width bins, Brier score, AUROC and `risk_at_<percent>`; `tasks` lists the
    ids of those pooled. The bins hold mean probability and accuracy of those that are not empty;
    the curve has the risk at each percent of coverage. An estimator without predictions has no
    rows.
    """
    model, tasks = judged["model"].unique(), judged["task"].unique().sort()
    scope = (model.item(), " ".join(tasks)) if len(model) else ()
    parts = judged.sort("probability", "correct").partition_by("estimator", "split", as_dict=True)
    pooled, binned, curve = [], [], []
    splits = judged["split"].unique().sort().to_list()
    for key in (key for key in product(estimators, splits) if key in parts):
        probability, correct = (parts[key][name].to_numpy() for name in ("probability", "correct"))
        risks = selective_risk(probability, correct)
        values = {
            "ece": ece(probability, correct, bins),
            "brier": brier(probability, correct),
            "auroc": auroc(probability, correct),
            **{f"risk_at_{percent}": float(risks[percent - 1]) for percent in COVERAGES},
        }
        pooled += [(*scope, *key, metric, value, len(correct)) for metric, value in values.items()]
        binned += [(*key, *row) for row in reliability_bins(probability, correct, bins)]
        curve += [(*key, *point) for point in zip(PERCENT / 100, risks, strict=True)]
    return Reliability(
        pl.DataFrame(pooled, schema=POOLED, orient="row"),
        pl.DataFrame(binned, schema=BINS, orient="row"),
        pl.DataFrame(curve, schema=CURVE, orient="row"),
    )


def selective_risk(probability: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """The error rate among the most confident 1, 2, ..., 100 % of the answers, [100].

    Answers of equal probability are kept in expectation over their orders. Where a coverage is not
    a whole number of answers, the last of them counts in part.
    """
    errors = np.concatenate([[0.0], expected_errors(probability, correct)])
    kept = PERCENT * len(correct) / 100
    return np.interp(kept, np.arange(len(errors)), errors) / kept


def reliability_bins(
    probability: np.ndarray, correct: np.ndarray, bins: int
) -> list[tuple[int, int, float, float]]:
    """(bin, n, mean probability, accuracy) of the equal-width bins that hold answers, as `ece`."""
    index = bin_index(probability, bins)
    n = np.bincount(index)
    filled = np.flatnonzero(n)
    confidence, accuracy = (
        np.bincount(index, weights=values)[filled] / n[filled] for values in (probability, correct)
    )
    columns = (column.tolist() for column in (filled, n[filled], confidence, accuracy))
    return list(zip(*columns, strict=True))
