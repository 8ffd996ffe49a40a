"""The paired bootstrap: every estimator measured on the same resamples of a task's examples.

Examples that are variants of one another stand or fall together, so whole groups are drawn (the
cluster bootstrap: Davison and Hinkley 1997, section 3.8). A resample is a vector of counts, how
often each example was drawn, and each metric is computed from the counts.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from tracecal.calibrate.answers import mean_probabilities
from tracecal.randomness import seeded

RESAMPLES = {
    "model": pl.String,
    "task": pl.String,
    "estimator": pl.String,
    "metric": pl.String,
    "observed": pl.Float64,
    "resampled": pl.List(pl.Float64),
}


def draw_counts(groups: Sequence[str], task: str, seed: int, resamples: int) -> np.ndarray:
    """How often each example is drawn in each resample, [resamples, n] whole numbers as floats.

    `groups` [n] holds each example's group; as many groups are drawn, with replacement, as there
    are. The draws depend on the groups' names, the task and the seed alone.
    """
    names, member_of = np.unique(np.array(groups, dtype=str), return_inverse=True)
    draws = seeded(seed, task, "bootstrap").multinomial(
        len(names), np.full(len(names), 1 / len(names)), size=resamples
    )
    return draws[:, member_of].astype(float)


def brier(probability: np.ndarray, correct: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Brier scores [resamples] of probabilities [n], NaN where no example was drawn."""
    return _ratio(counts @ (probability - correct) ** 2, counts.sum(axis=1))


def auroc(score: np.ndarray, correct: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Areas under the ROC curve [resamples] of scores [n], NaN where a class was not drawn.

    The share of (correct, incorrect) pairs that the score puts in order, ties counting half.
    """
    order = np.argsort(score, kind="stable")
    ranked, right, counts = score[order], correct[order], counts[:, order]
    tied = np.flatnonzero(np.diff(ranked, prepend=np.nan) != 0)
    positive = np.add.reduceat(counts * right, tied, axis=1)
    negative = np.add.reduceat(counts * ~right, tied, axis=1)
    below = np.cumsum(negative, axis=1) - negative / 2
    return _ratio((positive * below).sum(axis=1), positive.sum(axis=1) * negative.sum(axis=1))


def resample_metrics(
    predictions: pl.DataFrame,
    answers: pl.DataFrame,
    scores: pl.DataFrame,
    *,
    model: str,
    task: str,
    estimators: Sequence[str],
    seed: int,
    resamples: int,
) -> pl.DataFrame:
    """Brier score and AUROC of each estimator, on all examples and on each resample of them.

    `answers` holds `example_id`, `group_id` and `correct`. An example's probability is its mean
    over the splits that evaluated it; AUROC ranks the estimator's column of `scores` where there
    is one, else that probability. Examples without a prediction count for no metric. What is
    undefined (a resample with one class) is null.
    """
    answers = answers.join(scores, on="example_id", how="left", validate="1:1").sort("example_id")
    drawn = draw_counts(answers["group_id"].to_list(), task, seed, resamples)
    counts = np.vstack([np.ones(len(answers)), drawn])
    rows = []
    for estimator in estimators:
        judged = answers.with_row_index().join(
            mean_probabilities(predictions.filter(estimator=estimator), "example_id"),
            on="example_id",
            maintain_order="left",
        )
        probability, correct = judged["probability"].to_numpy(), judged["correct"].to_numpy()
        ranking = judged[estimator if estimator in scores.columns else "probability"].to_numpy()
        of_judged = counts[:, judged["index"].to_numpy()]
        for metric, values in (
            ("brier", brier(probability, correct, of_judged)),
            ("auroc", auroc(ranking, correct, of_judged)),
        ):
            defined = [None if np.isnan(value) else value for value in values.tolist()]
            rows.append((model, task, estimator, metric, defined[0], defined[1:]))
    return pl.DataFrame(rows, schema=RESAMPLES, orient="row")


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    undefined = np.full(len(denominator), np.nan)
    return np.divide(numerator, denominator, out=undefined, where=denominator > 0)
