"""Fits and metrics one at a time by scikit-learn and SciPy: what the package's, computed many at
once, are tested and timed against.
"""

import numpy as np
import polars as pl
from scipy.special import expit
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss


def optimum(x, correct, raw=False):
    """Means, scales, weights and intercept of scikit-learn's converged logistic regression."""
    mean = np.zeros(x.shape[1]) if raw else x.mean(axis=0)
    spread = x.std(axis=0)
    constant = spread <= 10 * np.finfo(float).eps * np.abs(x).max(axis=0)
    scale = np.ones(x.shape[1]) if raw else np.where(constant, 1.0, spread)
    regression = LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=1000)
    regression.fit((x - mean) / scale, correct)
    return mean, scale, regression.coef_[0], regression.intercept_[0]


def probabilities(x, correct, fitted, raw=False):
    """Probabilities of x where the rows `fitted` are calibrated on."""
    mean, scale, weights, intercept = optimum(x[fitted], correct[fitted], raw)
    return expit(intercept + (x - mean) / scale @ weights)


def auroc(score, correct):
    right, wrong = correct.sum(), (~correct).sum()
    return (rankdata(score)[correct].sum() - right * (right + 1) / 2) / (right * wrong)


def aurc(score, correct):
    order = np.argsort(-score, kind="stable")
    wrong, ranked = (~correct[order]).astype(float), score[order]
    tie = np.concatenate([[0], np.cumsum(np.diff(ranked) != 0)])
    errors = np.cumsum((np.bincount(tie, weights=wrong) / np.bincount(tie))[tie])
    return (errors / np.arange(1, len(correct) + 1)).mean()


def ece(probability, correct, bins):
    index = np.minimum((probability * bins).astype(int), bins - 1)
    gaps = [abs((correct - probability)[index == one].sum()) for one in range(bins)]
    return sum(gaps) / len(correct)


def metrics(probability, score, correct, bins):
    """The metrics of one estimator in one split; `score` is what it ranks by."""
    return {
        "aurc": aurc(score, correct),
        "auroc": auroc(score, correct),
        "auroc_calibrated": auroc(probability, correct),
        "brier": brier_score_loss(correct, probability),
        "ece": ece(probability, correct, bins),
        "nll": log_loss(correct, probability),
    }


def predicted(answers: pl.DataFrame, splits: pl.DataFrame, estimators: dict) -> dict:
    """Probabilities and rows evaluated by estimator and split, of answers sorted by id."""
    ids, correct = answers["example_id"], answers["correct"].to_numpy()
    parts = {
        split: ids.is_in(own).to_numpy()
        for split, own in splits.filter(part="calibration")
        .group_by("split")
        .agg("example_id")
        .sort("split")
        .iter_rows()
    }
    return {
        (name, split): (probabilities(answers.select(columns).to_numpy(), correct, part), ~part)
        for name, columns in estimators.items()
        for split, part in parts.items()
    }
