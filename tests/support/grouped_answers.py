"""Answers in groups whose variants are alike, an estimator's fits of them, and their split."""

import numpy as np
import polars as pl

from tracecal.fits.fits import EstimatorFits, Logistic
from tracecal.statistics.splits import make_splits


def logistic(features=("a", "b"), n_splits=1):
    """An estimator's fits, each σ(a + 0 b)."""
    fit = Logistic(means=[0.0] * 2, scales=[1.0] * 2, weights=[1.0, 0.0], intercept=0.0)
    splits = dict.fromkeys(range(n_splits), fit)
    return EstimatorFits(features=features, splits=splits, final=fit)


def answers(rng, groups, variants, risk):
    """Answers whose variants score alike and are right or wrong together, whatever the score."""
    correct = np.repeat(rng.random(groups) >= risk, variants)
    ids = [f"g{g:04}-{v}" for g in range(groups) for v in range(variants)]
    return pl.DataFrame(
        {
            "example_id": ids,
            "group_id": [name.split("-")[0] for name in ids],
            "correct": correct,
            "a": np.repeat(rng.normal(size=groups), variants) + 0.01 * rng.normal(size=len(ids)),
            "b": rng.normal(size=len(ids)),
        }
    )


def make_split(frame, seed=0):
    return make_splits(frame.select("example_id", "group_id"), "task", seed, 1, 0.35)
