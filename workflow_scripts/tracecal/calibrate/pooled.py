"""One calibrator for all parts of a task's answers, by partial pooling.

Parts of different names fail at different rates, and the same score may mean more of one than of
another. The fit has a common intercept and slopes, and for each name its own deviations from them,
which a penalty draws to zero: with few labels it is nearly the common fit, with many nearly a fit
for each name (a ridge form of a hierarchical regression: Gelman and Hill 2007, chapter 12).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from tracecal.calibrate.logistic import minimise
from tracecal.calibrate.protocol import Calibrator, Pooled, constant, fit_by_shape, scales_of

# The factors of the squared weights: the common slopes and the names' intercepts, and how far a
# name's slopes are from the common ones.
COMMON, DEVIATION = 1.0, 10.0
# The input that says which part a row is, by its place among the names; and as a fit names it
PART = "parts.part_of_answer"
PART_FEATURE = PART.split(".")[1]


def part_codes(rows: pl.DataFrame, names: Sequence[str], column: str = PART) -> pl.DataFrame:
    """`example_id` of a task's `rows` and, as `column`, the place of their `part` in `names`."""
    code = pl.col("part").replace_strict(list(names), range(len(names)), return_dtype=pl.Int64)
    return rows.select("example_id", code.alias(column))


def by_part(
    estimators: Mapping[str, Sequence[str]], own_fits: Mapping[str, str]
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Estimators' columns and fits where those without a fit of their own are fitted by part.

    >>> by_part({"trace": ["scores.trace"], "stack": ["features.length"]}, {"stack": "mixture"})[0]
    {'trace': ['scores.trace', 'parts.part_of_answer'], 'stack': ['features.length']}
    """
    columns = {
        name: [*own] if name in own_fits else [*own, PART] for name, own in estimators.items()
    }
    return columns, {**dict.fromkeys(estimators, "pooled"), **own_fits}


def fit_pooled(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], names: Sequence[str]
) -> list[Calibrator]:
    """Fit each part of the data: inputs x [n, d + 1] (finite) and labels [n] (bool).

    The last column of x is the place of a row's name in `names`. Labels of one class give a
    constant. Raises `ArithmeticError` where a fit does not converge.
    """
    known = [constant(correct) for _, correct in parts]
    return fit_by_shape(parts, known, lambda x, correct: _fit(x, correct, names))


def _fit(x: np.ndarray, correct: np.ndarray, names: Sequence[str]) -> list[Pooled]:
    """The fits of x [B, n, d + 1] and labels [B, n]."""
    features, codes = x[:, :, :-1], x[:, :, -1]
    means, scales = features.mean(axis=1), scales_of(features)
    z = (features - means[:, None]) / scales[:, None]
    named = (codes[:, :, None] == np.arange(len(names))).astype(float)
    own = (named[:, :, :, None] * z[:, :, None, :]).reshape(*named.shape[:2], -1)
    design = np.concatenate([z, named, own], axis=2)
    d, count = z.shape[2], len(names)
    factors = np.repeat([COMMON, DEVIATION], [d + count, count * d])
    weights, intercepts = minimise(design, correct, np.tile(factors, (len(x), 1)))
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
