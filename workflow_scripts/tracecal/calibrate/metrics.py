"""How good confidence is: proper scores, calibration error, ranking.

Arrays are [n]: `probability` in [0, 1], `correct` bool, `score` any real number, larger = more
confident. None means undefined. The formulas are short and tested against scikit-learn, whose
checks of its arguments would take many times as long as the arithmetic on a few hundred answers.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import polars as pl
from scipy.stats import rankdata


def brier(probability: np.ndarray, correct: np.ndarray) -> float | None:
    """Mean squared error of the probability (Brier 1950)."""
    return float(((probability - correct) ** 2).mean()) if len(correct) else None


def nll(probability: np.ndarray, correct: np.ndarray) -> float | None:
    """Mean negative log-likelihood in nats; probabilities are kept off 0 and 1 by one epsilon."""
    if not len(correct):
        return None
    epsilon = np.finfo(probability.dtype).eps
    given = np.where(correct, probability, 1 - probability)
    return float(-np.log(given.clip(epsilon, 1 - epsilon)).mean())


def ece(probability: np.ndarray, correct: np.ndarray, bins: int) -> float | None:
    """Expected calibration error over `bins` equal-width bins (Naeini et al. 2015)."""
    if not len(correct):
        return None
    gaps = np.bincount(bin_index(probability, bins), weights=correct - probability, minlength=bins)
    return float(np.abs(gaps).sum() / len(correct))


def bin_index(probability: np.ndarray, bins: int) -> np.ndarray:
    """The equal-width bin of each probability: k holds [k/bins, (k+1)/bins), the last one 1 too."""
    return np.minimum((probability * bins).astype(int), bins - 1)


def auroc(score: np.ndarray, correct: np.ndarray) -> float | None:
    """Area under the ROC curve, correct = positive; None where a class is missing.

    The share of pairs of a right and a wrong answer that the score ranks rightly, a tie half.
    """
    if correct.all() or not correct.any():
        return None
    right, wrong = correct.sum(), (~correct).sum()
    above = rankdata(score)[correct].sum() - right * (right + 1) / 2
    return float(above / (right * wrong))


def aurc(score: np.ndarray, correct: np.ndarray) -> float | None:
    """Area under the risk-coverage curve: the mean, over k, of the error rate among the k most
    confident answers (Geifman et al. 2019), ties in expectation.
    """
    if not len(correct):
        return None
    return float((expected_errors(score, correct) / np.arange(1, len(correct) + 1)).mean())


def expected_errors(score: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """How many of the k most confident answers are wrong, k = 1..n.

    Answers of equal score count in expectation over their orders.
    """
    order = np.argsort(-score, kind="stable")
    wrong, ranked = (~correct[order]).astype(float), score[order]
    tie = np.concatenate([[0], np.cumsum(np.diff(ranked) != 0)])
    return np.cumsum((np.bincount(tie, weights=wrong) / np.bincount(tie))[tie])


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

    `answers` holds `example_id` and `correct`. Ranking metrics use the estimator's column of
    `scores` where there is one, else the probability. `n` counts the answers with a prediction;
    with none of them every value is null. Sorted by estimator, split and metric.
    """
    judged = (
        predictions.join(answers, on="example_id", how="left", validate="m:1")
        .join(scores, on="example_id", how="left", validate="m:1")
        .sort("example_id")
        .partition_by("estimator", "split", as_dict=True)
    )
    rows = []
    for estimator, split in product(estimators, splits):
        part = judged.get((estimator, split), pl.DataFrame(schema=NO_PREDICTION))
        probability, correct = part["probability"].to_numpy(), part["correct"].to_numpy()
        ranking = part[estimator if estimator in part.columns else "probability"].to_numpy()
        values = {
            "brier": brier(probability, correct),
            "ece": ece(probability, correct, ece_bins),
            "nll": nll(probability, correct),
            "auroc": auroc(ranking, correct),
            "aurc": aurc(ranking, correct),
        }
        rows += [
            (model, task, estimator, split, metric, value, len(correct))
            for metric, value in values.items()
        ]
    return pl.DataFrame(rows, schema=METRICS, orient="row").sort("estimator", "split", "metric")


METRICS = {
    "model": pl.String,
    "task": pl.String,
    "estimator": pl.String,
    "split": pl.Int64,
    "metric": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
}

NO_PREDICTION = {"probability": pl.Float64, "correct": pl.Boolean}
