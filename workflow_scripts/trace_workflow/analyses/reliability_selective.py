"""Predictions pooled over tasks: calibration, ranking and selective prediction (paper, appendix).

Within each split the evaluation parts of all tasks are pooled. Unlike elsewhere, answers are ranked
by calibrated probability: raw scores of different tasks have no common scale, and the most
confident answers of several tasks are selected by probability. A probability reflects its task's
base rate, so pooled AUROC is not a mean of AUROCs.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import polars as pl

from trace_workflow.analyses.study_files import KEYS, StudyFiles
from tracecal.statistics.probability_metrics import brier, ece
from tracecal.statistics.ranking_metrics import expected_errors, single_auroc

COVERAGES = (10, 50, 90)
N_BINS = 6  # of equally many answers
PERCENT = np.arange(1, 101)

POOLED = {
    **dict.fromkeys(("model", "tasks", "estimator"), pl.String),
    "split": pl.Int64,
    "metric": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
}
KEY = {"estimator": pl.String, "split": pl.Int64}
BINS = KEY | {"bin": pl.Int64, "n": pl.Int64, "probability": pl.Float64, "accuracy": pl.Float64}
CURVE = KEY | {"coverage": pl.Float64, "risk": pl.Float64}


def analysis(
    files: StudyFiles, estimators: Sequence[str], ece_bins: int, part: str
) -> pl.DataFrame:
    """'pooled', 'bins' or 'curve' of the predictions on the pairs."""
    columns = ["estimator", "split", "example_id", "probability"]
    predictions = files.read("predictions", columns)
    labelled = predictions.filter(pl.col("estimator").is_in(estimators)).join(
        files.labels(), on=KEYS, how="left", validate="m:1"
    )
    if part == "curve":
        return risk_curve(labelled, estimators)
    if part == "bins":
        return reliability_bins(labelled, estimators)
    return pooled_metrics(labelled, estimators, ece_bins)


def pooled_metrics(
    labelled: pl.DataFrame, estimators: Sequence[str], ece_bins: int
) -> pl.DataFrame:
    """Metrics of one model's predictions on all tasks, by estimator and split; columns POOLED.

    `labelled` has `model`, `task`, `estimator`, `split`, `probability` and `correct`. Metrics are
    ECE over `ece_bins` equal-width bins, Brier score, AUROC and `risk_at_<percent>`; `tasks` lists
    the ids of the pooled tasks. An estimator without predictions has no rows.
    """
    scope = (labelled["model"].first(), " ".join(labelled["task"].unique().sort()))
    rows = []
    for key, probability, correct in _by_split(labelled, estimators):
        risks, batch = selective_risk(probability, correct), (probability[None], correct[None])
        values = {
            "ece": float(ece(*batch, ece_bins)[0]),
            "brier": float(brier(*batch)[0]),
            "auroc": single_auroc(probability, correct),
            **{f"risk_at_{percent}": float(risks[percent - 1]) for percent in COVERAGES},
        }
        rows += [(*scope, *key, metric, value, len(correct)) for metric, value in values.items()]
    return pl.DataFrame(rows, schema=POOLED, orient="row")


def reliability_bins(labelled: pl.DataFrame, estimators: Sequence[str]) -> pl.DataFrame:
    """Mean probability and accuracy of N_BINS bins of equally many answers; columns BINS.

    Answers of equal probability stay together, which may leave a bin empty. The arguments are those
    of `pooled_metrics`.
    """
    from scipy.stats import rankdata  # takes half a second, and tables need this module's names

    rows = []
    for key, probability, correct in _by_split(labelled, estimators):
        share = (rankdata(probability) - 0.5) / len(probability)
        index = (N_BINS * share).astype(int)
        n = np.bincount(index)
        filled = np.flatnonzero(n)
        means = (
            np.bincount(index, weights=values)[filled] / n[filled]
            for values in (probability, correct)
        )
        columns = (column.tolist() for column in (filled, n[filled], *means))
        rows += [(*key, *row) for row in zip(*columns, strict=True)]
    return pl.DataFrame(rows, schema=BINS, orient="row")


def risk_curve(labelled: pl.DataFrame, estimators: Sequence[str]) -> pl.DataFrame:
    """The risk at each percent of coverage; arguments as `pooled_metrics`, columns CURVE."""
    rows = [
        (*key, *point)
        for key, probability, correct in _by_split(labelled, estimators)
        for point in zip(PERCENT / 100, selective_risk(probability, correct), strict=True)
    ]
    return pl.DataFrame(rows, schema=CURVE, orient="row")


def selective_risk(probability: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """The error rate among the most confident 1, 2, ..., 100 % of the answers, [100].

    Ties are kept in expectation over their orders. Where a coverage is no whole number of answers,
    the last answer counts in part.

    >>> risk = selective_risk(np.array([0.9, 0.2]), np.array([True, False]))
    >>> risk[[49, 99]].tolist()
    [0.0, 0.5]
    """
    errors = np.concatenate([[0.0], expected_errors(probability, correct)])
    n_kept = PERCENT * len(correct) / 100
    return np.interp(n_kept, np.arange(len(errors)), errors) / n_kept


def _by_split(
    labelled: pl.DataFrame, estimators: Sequence[str]
) -> Iterator[tuple[tuple[str, int], np.ndarray, np.ndarray]]:
    """(estimator, split), probabilities [n] and labels [n], for each that has predictions."""
    ordered = labelled.sort("probability", "correct")
    parts = ordered.partition_by("estimator", "split", as_dict=True)
    for key in product(estimators, labelled["split"].unique().sort()):
        if key in parts:
            yield key, *(parts[key][name].to_numpy() for name in ("probability", "correct"))
