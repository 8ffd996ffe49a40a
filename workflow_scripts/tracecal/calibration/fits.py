"""Fits: calibrators that give probabilities from scores and features, and their JSON.

1. `fit` fits labelled answers by a method of the protocol; `fit_all` fits many parts at once.
2. `predict` of each kind of fit gives probabilities; `probability_bounds` bounds them where inputs
   are known between bounds only.
3. Pydantic reads and writes them: `estimator_fits.Coefficients` is their type in a file.

Ridges hold with few labels: their penalty is ten times scikit-learn's, and no confidence lowers the
probability. `fit_ridge` pulls the weights to 0, `fit_prior_ridge` those of confidences to a small
value above it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from pydantic import ConfigDict, Field

from tracecal.calibration.regression import fit_logistic_regressions, sigmoid
from tracecal.features.features import FEATURES

Method = Literal["platt", "platt_raw", "isotonic", "identity"]
# Smallest probability of either label in a mean of log odds.
SMALLEST_PROBABILITY = 1e-6
Number = Annotated[float, Field(strict=True)]  # true and false are none
# Features that may raise or lower the probability; all others are confidences.
EITHER_SIGN = frozenset({"log_length", "entropy_slope"})
# Penalties on squared weights: of a trace's features, which are correlated, and of a user's own
# column, for which it is scikit-learn's default.
RIDGE, OWN_COLUMN = 10.0, 1.0
# The prior ridge pulls the weights of confidences to values with this sum, and its intercept, whose
# prior is normal with this standard deviation, to 0.
PRIOR_SUM, INTERCEPT_DEVIATION = 0.8, 1.8


class _Checked:
    """Where pydantic reads a fit, it refuses unknown keys and what is no finite number."""

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)


def _sum_by_row(terms: np.ndarray) -> np.ndarray:
    """Sum each row of terms [n, d]; other rows do not change a sum's last bit.

    A matrix product would: a single answer could then miss the threshold that it set in a file.
    """
    return np.ascontiguousarray(terms).sum(axis=1)


@dataclass(frozen=True)
class Logistic(_Checked):
    """σ(b + w · (x - mean) / scale), with an entry per feature in each list."""

    kind: Literal["logistic"] = field(default="logistic", kw_only=True)
    means: list[Number]
    scales: list[Number]
    weights: list[Number]
    intercept: Number

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Probabilities [n] of features [n, d]."""
        means, scales, weights = self._arrays
        return sigmoid(self.intercept + _sum_by_row((x - means) / scales * weights))

    @cached_property
    def _arrays(self) -> np.ndarray:
        return np.array([self.means, self.scales, self.weights])


@dataclass(frozen=True)
class Isotonic(_Checked):
    """Piecewise-linear and monotone through the points (x, y)."""

    kind: Literal["isotonic"] = field(default="isotonic", kw_only=True)
    x: list[Number]
    y: list[Number]

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Probabilities [n] of one feature [n, 1]."""
        return np.interp(x[:, 0], *self._arrays)

    @cached_property
    def _arrays(self) -> np.ndarray:
        return np.array([self.x, self.y])


@dataclass(frozen=True)
class Constant(_Checked):
    """The fit of labels of one class: (n_1 + 1) / (n + 2), Laplace's rule of succession."""

    kind: Literal["constant"] = field(default="constant", kw_only=True)
    probability: Number

    def predict(self, x: np.ndarray) -> np.ndarray:
        """The same probability for each row of x [n, d]."""
        return np.full(len(x), self.probability)


@dataclass(frozen=True)
class Identity(_Checked):
    """A score that serves as a probability without calibration."""

    kind: Literal["identity"] = field(default="identity", kw_only=True)

    def predict(self, x: np.ndarray) -> np.ndarray:
        """The scores [n, 1], within [0, 1], themselves."""
        return np.clip(x[:, 0], 0.0, 1.0)


@dataclass(frozen=True)
class Mixture(_Checked):
    """Σ_k weights[k] · p_k, where `fits[k]` gives p_k from the inputs at `columns[k]`."""

    kind: Literal["mixture"] = field(default="mixture", kw_only=True)
    weights: list[Number]
    columns: list[list[int]]
    fits: list["Fit"]

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Probabilities [n] of inputs [n, d]."""
        members = zip(self.columns, self.fits, strict=True)
        return self.combine([fit.predict(x[:, columns]) for columns, fit in members])

    def combine(self, proba: Sequence[np.ndarray]) -> np.ndarray:
        """The probabilities of those of `fits`."""
        return sum(weight * one for weight, one in zip(self.weights, proba, strict=True))


@dataclass(frozen=True)
class LogOddsMean(_Checked):
    """σ(mean_k logit(p_k)), where `fits[k]` gives p_k from the inputs at `columns[k]`."""

    kind: Literal["log_odds_mean"] = field(default="log_odds_mean", kw_only=True)
    columns: list[list[int]]
    fits: list["Fit"]

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Probabilities [n] of inputs [n, d]."""
        members = zip(self.columns, self.fits, strict=True)
        return self.combine([fit.predict(x[:, columns]) for columns, fit in members])

    def combine(self, proba: Sequence[np.ndarray]) -> np.ndarray:
        """The probabilities of those of `fits`."""
        inner = np.clip(proba, SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
        return sigmoid((np.log(inner) - np.log1p(-inner)).mean(axis=0))


@dataclass(frozen=True)
class Pooled(_Checked):
    """`Logistic` with an intercept and weights for each of `names`, and common ones for other rows.

    The last input is the index of a row's name in `names`, or any other number.
    """

    kind: Literal["pooled"] = field(default="pooled", kw_only=True)
    names: list[str]
    means: list[Number]
    scales: list[Number]
    weights: list[list[Number]]
    intercepts: list[Number]
    common_weights: list[Number]
    common_intercept: Number

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Probabilities [n] of inputs [n, d + 1]."""
        z = (x[:, :-1] - np.array(self.means)) / np.array(self.scales)
        weights, intercepts = self.coefficients(x[:, -1])
        return sigmoid(intercepts + _sum_by_row(z * weights))

    def coefficients(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The weights [n, d] and intercepts [n] for the indices [n] of names."""
        n_names = len(self.names)
        index = np.where(np.isin(codes, np.arange(n_names)), codes, n_names).astype(int)
        weights = np.array([*self.weights, self.common_weights])
        return weights[index], np.array([*self.intercepts, self.common_intercept])[index]


Fit = Logistic | Isotonic | Constant | Identity | Mixture | LogOddsMean | Pooled


def fit(x: np.ndarray, correct: np.ndarray, method: Method) -> Fit:
    """Fit features [n, d] (finite) to labels [n] (bool), as `fit_all` does.

    >>> x = np.arange(40.0)[:, None]
    >>> fit(x, x[:, 0] > 19, "platt").predict(np.array([[10.0], [30.0]])).round(2).tolist()
    [0.11, 0.91]
    """
    return fit_all([(x, correct)], method)[0]


def fit_all(
    parts: Sequence[tuple[np.ndarray, np.ndarray]],
    method: Method,
    penalty: float | np.ndarray = 1.0,
    lower: np.ndarray | None = None,
    centre: np.ndarray | None = None,
    intercept_penalty: float = 0.0,
) -> list[Fit]:
    """Fit each part by itself.

    Parameters
    ----------
    parts : sequence of pairs
        Features [n, d] (finite) and labels [n] (bool) of each part.
    method : {"platt", "platt_raw", "isotonic", "identity"}
        platt: standardise (ddof 0, zero variance -> 1), then logistic regression with
        scikit-learn's default penalty. platt_raw: the same without standardising. isotonic: for one
        feature; several fall back on platt. identity: nothing is fitted.
    penalty : float or array [d]
        Factor of half the squared distances of the weights from `centre`: 1 / C in scikit-learn.
    lower, centre : array [d], optional
        Lower bounds, 0 or -inf, and centre of a logistic fit's weights; by default none and 0.
    intercept_penalty : float
        Factor of half the squared intercept.

    Raises
    ------
    ArithmeticError
        Where a fit does not converge.
    """
    is_raw = method == "platt_raw"
    fits = [_without_regression(*part, method) for part in parts]
    for numbers, x, correct in stack_unfitted(parts, fits):
        batch = _logistic(x, correct, is_raw, penalty, lower, centre, intercept_penalty)
        for number, batch_fit in zip(numbers, batch, strict=True):
            fits[number] = batch_fit
    return fits


def stack_unfitted(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], fits: Sequence[Fit | None]
) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
    """Stack the parts without a fit, by their shape, so that those of one are fitted at once.

    Yields the numbers [B] of the parts, their inputs [B, n, d] and labels [B, n].
    """
    shapes: dict[tuple[int, ...], list[int]] = {}
    for number, (x, _) in enumerate(parts):
        if fits[number] is None:
            shapes.setdefault(x.shape, []).append(number)
    for numbers in shapes.values():
        x = np.stack([parts[number][0] for number in numbers])
        yield numbers, x, np.stack([parts[number][1] for number in numbers])


def _without_regression(x: np.ndarray, correct: np.ndarray, method: Method) -> Fit | None:
    """The fit of a part that needs no logistic regression, else None."""
    if method == "identity":
        return Identity()
    if constant := constant_fit(correct):
        return constant
    if method == "isotonic" and x.shape[1] == 1:
        # A score such as a slope may rank the wrong way round: its direction is fitted, too.
        return isotonic_fit(x[:, 0], correct, "auto")
    return None


def constant_fit(correct: np.ndarray) -> Constant | None:
    """The fit of labels [n] of one class; None for two classes."""
    if correct.all() or not correct.any():
        return Constant((int(correct.sum()) + 1) / (len(correct) + 2))
    return None


def _logistic(
    x: np.ndarray,
    correct: np.ndarray,
    raw: bool,
    penalty: float | np.ndarray,
    lower: np.ndarray | None,
    centre: np.ndarray | None,
    intercept_penalty: float,
) -> Iterator[Logistic]:
    """Fit features [B, n, d] to labels [B, n]."""
    means, scales = x.mean(axis=1), feature_scales(x)
    # Standardised in any case, for numerical stability: a weight w of a raw feature is w * scale of
    # the standardised one, and the penalty falls on w.
    penalties = penalty * (scales**-2 if raw else np.ones_like(scales))
    standard = (x - means[:, None]) / scales[:, None]
    weights, intercepts = fit_logistic_regressions(
        standard, correct, penalties, lower, centre, intercept_penalty
    )
    if raw:
        weights = weights / scales
        intercepts = intercepts - (weights * means).sum(axis=1)
        means, scales = np.zeros_like(means), np.ones_like(scales)
    for mean, scale, weight, intercept in zip(means, scales, weights, intercepts, strict=True):
        yield Logistic(mean.tolist(), scale.tolist(), weight.tolist(), float(intercept))


def feature_scales(x: np.ndarray) -> np.ndarray:
    """Standard deviations (ddof 0) [B, d]; 1 where a feature is constant up to rounding errors."""
    spread = x.std(axis=1)
    rounding = 10 * np.finfo(float).eps * np.abs(x).max(axis=1)
    return np.where(spread > rounding, spread, 1.0)


def isotonic_fit(
    score: np.ndarray, correct: np.ndarray, rising: bool | Literal["auto"]
) -> Isotonic:
    """Fit the isotonic regression of labels [n] of both classes on scores [n].

    It equals scikit-learn's, which takes a second to load: equal scores count as their mean, and a
    flat stretch is stored by its ends. 'auto' takes the sign of Spearman's correlation.
    """
    from scipy.optimize import isotonic_regression  # slow to load, and not needed to predict

    x, index, counts = np.unique(score, return_inverse=True, return_counts=True)
    if rising == "auto":
        from scipy.stats import spearmanr  # slow to load, and seldom needed

        rising = len(x) > 1 and bool(spearmanr(score, correct).statistic >= 0)
    means = np.bincount(index, weights=correct) / counts
    values = isotonic_regression(means, weights=counts, increasing=rising).x
    flat = values[1:] == values[:-1]
    ends = np.append(True, ~flat) | np.append(~flat, True)
    return Isotonic(x[ends].tolist(), values[ends].tolist())


def probabilities(columns: pl.DataFrame, fits: Iterable[Fit]) -> np.ndarray:
    """Predict each answer with each of `fits`, [fits, n]; NaN where a column is None."""
    x = columns.cast({pl.Null: pl.Float64}).cast(pl.Float64).to_numpy()
    complete = np.isfinite(x).all(axis=1)
    predicted = [fit.predict(np.where(complete[:, None], x, 0.0)) for fit in fits]
    return np.where(complete, np.array(predicted), np.nan)


def probability_bounds(fit: Fit, x: np.ndarray) -> np.ndarray:
    """Predict answers whose inputs are known between bounds: the value and its bounds, [3, n].

    x is [3, n, d]: the inputs, and their lower and upper bounds. A combination combines the bounds
    of its fits, which may be wider than necessary.
    """
    if isinstance(fit, Mixture | LogOddsMean):
        members = [
            probability_bounds(member, x[..., columns])
            for columns, member in zip(fit.columns, fit.fits, strict=True)
        ]
        return fit.combine(members)
    if isinstance(fit, Logistic | Pooled):
        x = np.where(_rises(fit, x[0]), x, x[[0, 2, 1]])
    proba = fit.predict(x.reshape(-1, x.shape[2])).reshape(x.shape[:2])
    proba[1:] = np.minimum(*proba[1:]), np.maximum(*proba[1:])  # unknown where either end is
    return proba


def _rises(fit: Logistic | Pooled, x: np.ndarray) -> np.ndarray:
    """Whether the probability of inputs x [n, d] rises with each, [n, d]."""
    if isinstance(fit, Logistic):
        return fit._arrays[2] >= 0
    weights, _ = fit.coefficients(x[:, -1])
    return np.column_stack([weights >= 0, np.ones(len(x), dtype=bool)])  # the last is no score


def as_json(fit: Fit) -> dict[str, Any]:
    """The fit as plain JSON, as a calibrator's file holds it."""
    return asdict(fit)


def fit_ridge(parts: Sequence[tuple[np.ndarray, np.ndarray]], features: Sequence[str]) -> list[Fit]:
    """Fit each part, features [n, d] and labels [n] (bool), by penalised logistic regression.

    Weights are at least 0, except those of `EITHER_SIGN`.
    """
    penalty = np.array([RIDGE if name in FEATURES else OWN_COLUMN for name in features])
    return fit_all(parts, "platt", penalty, lower_bounds(features))


def fit_prior_ridge(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], features: Sequence[str]
) -> list[Fit]:
    """Fit each part, features [n, d] and labels [n] (bool), by a regression with a prior.

    Standardised confidences start from equal weights, those of `EITHER_SIGN` from 0.
    """
    lower = lower_bounds(features)
    bounded = lower == 0
    centre = np.where(bounded, PRIOR_SUM / max(1, bounded.sum()), 0.0)
    return fit_all(parts, "platt", RIDGE, lower, centre, INTERCEPT_DEVIATION**-2)


def lower_bounds(features: Sequence[str]) -> np.ndarray:
    """Lower bounds [d] of the weights: 0, and none for `EITHER_SIGN`."""
    return np.array([-np.inf if name in EITHER_SIGN else 0.0 for name in features])
