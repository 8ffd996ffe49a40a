"""Partial pooling: one calibrator for all parts of a task's answers.

The intercept and the slopes of each part's name shrink towards common ones.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from tracecal.fits.fits import Fit, Pooled
from tracecal.fits.regression import (
    constant_fit,
    feature_scales,
    fit_logistic_regressions,
    stack_unfitted,
)

# Penalties on squares: of common slopes and the names' intercepts, and of the deviations of a
# name's slopes from the common ones.
COMMON, DEVIATION = 1.0, 10.0
# The input that says which part a row is, by its place among the names; and its name in a fit.
PART = "parts.part_of_answer"
PART_FEATURE = PART.split(".")[1]


def part_codes(rows: pl.DataFrame, names: Sequence[str], column: str = PART) -> pl.DataFrame:
    """`example_id` of a task's `rows` and, as `column`, the place of their `part` in `names`."""
    code = pl.col("part").replace_strict(list(names), range(len(names)), return_dtype=pl.Int64)
    return rows.select("example_id", code.alias(column))


def by_part(
    estimators: Mapping[str, Sequence[str]], own_fits: Mapping[str, str]
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Add the part's code to the inputs of estimators outside `own_fits`, and pool their fits.

    >>> estimators = {"trace": ["scores.trace"], "log_ridge": ["features.length"]}
    >>> by_part(estimators, {"log_ridge": "ridge"})[0]
    {'trace': ['scores.trace', 'parts.part_of_answer'], 'log_ridge': ['features.length']}
    """
    inputs = {
        name: [*columns] if name in own_fits else [*columns, PART]
        for name, columns in estimators.items()
    }
    return inputs, {**dict.fromkeys(estimators, "pooled"), **own_fits}


def fit_pooled(parts: Sequence[tuple[np.ndarray, np.ndarray]], names: Sequence[str]) -> list[Fit]:
    """Fit each part of the data: inputs x [n, d + 1] (finite) and labels [n] (bool).

    The last column of x is the place of a row's name in `names`. Labels of one class give a
    constant. Raises `ArithmeticError` where a fit does not converge.
    """
    fits: list[Fit | None] = [constant_fit(correct) for _, correct in parts]
    for numbers, x, correct in stack_unfitted(parts, fits):
        for number, batch_fit in zip(numbers, _fit(x, correct, names), strict=True):
            fits[number] = batch_fit
    return fits


def _fit(x: np.ndarray, correct: np.ndarray, names: Sequence[str]) -> list[Pooled]:
    """Fit inputs x [B, n, d + 1] to labels [B, n]."""
    features, codes = x[:, :, :-1], x[:, :, -1]
    means, scales = features.mean(axis=1), feature_scales(features)
    z = (features - means[:, None]) / scales[:, None]
    indicators = (codes[:, :, None] == np.arange(len(names))).astype(float)
    products = indicators[:, :, :, None] * z[:, :, None, :]
    products = products.reshape(*indicators.shape[:2], -1)
    design = np.concatenate([z, indicators, products], axis=2)
    d, count = z.shape[2], len(names)
    penalties = np.repeat([COMMON, DEVIATION], [d + count, count * d])
    penalties = np.tile(penalties, (len(x), 1))
    weights, intercepts = fit_logistic_regressions(design, correct, penalties)
    slopes, shifts, deviations = np.split(weights, [d, d + count], axis=1)
    return [
        Pooled(
            names=list(names),
            means=means[b].tolist(),
            scales=scales[b].tolist(),
            weights=(slopes[b] + deviations[b].reshape(count, d)).tolist(),
            intercepts=(intercepts[b] + shifts[b]).tolist(),
            common_weights=slopes[b].tolist(),
            common_intercept=float(intercepts[b]),
        )
        for b in range(len(x))
    ]
