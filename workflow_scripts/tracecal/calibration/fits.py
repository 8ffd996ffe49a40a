"""The calibration protocol: fits on labelled answers give probabilities for others."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tracecal.calibration.regression import fit_logistic_regressions, sigmoid

Method = Literal["platt", "platt_raw", "isotonic", "identity"]


@dataclass(frozen=True)
class Logistic:
    """σ(b + w · (x - mean) / scale); all lists have one entry per feature."""

    means: list[float]
    scales: list[float]
    weights: list[float]
    intercept: float

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Probabilities [n] of features [n, d]."""
        standardised = (x - np.array(self.means)) / np.array(self.scales)
        return sigmoid(self.intercept + standardised @ np.array(self.weights))


@dataclass(frozen=True)
class Isotonic:
    """Piecewise-linear and monotone through the points (x, y)."""

    x: list[float]
    y: list[float]

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Probabilities [n] of one feature [n, 1]."""
        return np.interp(x[:, 0], self.x, self.y)


@dataclass(frozen=True)
class Constant:
    """Used where the labels have one class: Laplace's rule of succession, (n_1 + 1) / (n + 2)."""

    probability: float

    def predict(self, x: np.ndarray) -> np.ndarray:
        """The same probability for each row of x [n, d]."""
        return np.full(len(x), self.probability)


@dataclass(frozen=True)
class Identity:
    """A score that is used as a probability without calibration."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        """The scores [n, 1], within [0, 1], themselves."""
        return np.clip(x[:, 0], 0.0, 1.0)


@dataclass(frozen=True)
class Mixture:
    """Σ_k weights[k] · p_k, in which `fits[k]` gives p_k of the inputs at `columns[k]`."""

    weights: list[float]
    columns: list[list[int]]
    fits: list["Fit"]

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Probabilities [n] of inputs [n, d]."""
        members = zip(self.weights, self.columns, self.fits, strict=True)
        return sum(weight * fit.predict(x[:, columns]) for weight, columns, fit in members)


@dataclass(frozen=True)
class Pooled:
    """As `Logistic`, with an intercept and weights for each of `names`, and common ones for others.

    The last input is the place of a row's name, or any other number where it is none of them.
    """

    names: list[str]
    means: list[float]
    scales: list[float]
    weights: list[list[float]]
    intercepts: list[float]
    common_weights: list[float]
    common_intercept: float

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Probabilities [n] of inputs [n, d + 1]."""
        z = (x[:, :-1] - np.array(self.means)) / np.array(self.scales)
        weights, intercepts = self.of_rows(x[:, -1])
        return sigmoid(intercepts + (z * weights).sum(axis=1))

    def of_rows(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The weights [n, d] and intercepts [n] for the places [n] of names."""
        count = len(self.names)
        known = np.isin(codes, np.arange(count))
        place = np.where(known, codes, count).astype(int)
        weights = np.array([*self.weights, self.common_weights])
        return weights[place], np.array([*self.intercepts, self.common_intercept])[place]


Fit = Logistic | Isotonic | Constant | Identity | Mixture | Pooled


def fit(x: np.ndarray, correct: np.ndarray, method: Method) -> Fit:
    """Fit features x [n, d] (finite) to labels [n] (bool), as `fit_all`."""
    return fit_all([(x, correct)], method)[0]


def fit_all(
    parts: Sequence[tuple[np.ndarray, np.ndarray]],
    method: Method,
    penalty: float | np.ndarray = 1.0,
    least: np.ndarray | None = None,
) -> list[Fit]:
    """Fit each part, features [n, d] (finite) and labels [n] (bool), by itself.

    platt: standardise (ddof 0, zero variance -> 1), logistic regression with scikit-learn's
    default penalty. platt_raw: the same without standardising. isotonic: for one feature;
    several fall back on platt. identity: nothing is fitted. `penalty` is the factor of the squared
    weights, 1 / C in scikit-learn, of all or of each [d]; `least` [d] are lower bounds, 0 or -inf,
    of a logistic fit's weights (default: none). Raises `ArithmeticError` where a fit does not
    converge.
    """
    return fit_by_shape(
        parts,
        [_without_regression(*part, method) for part in parts],
        lambda x, correct: _logistic(x, correct, method == "platt_raw", penalty, least),
    )


def fit_by_shape(
    parts: Sequence[tuple[np.ndarray, np.ndarray]],
    known: Sequence[Fit | None],
    fit_together: Callable[[np.ndarray, np.ndarray], Sequence[Fit]],
) -> list[Fit]:
    """The calibrators that are `known`, and fits of the other parts, those of one shape together.

    `fit_together` gets their inputs [B, n, d] and labels [B, n].
    """
    fitted = list(known)
    shapes: dict[tuple[int, ...], list[int]] = {}
    for place, (x, _) in enumerate(parts):
        if fitted[place] is None:
            shapes.setdefault(x.shape, []).append(place)
    for places in shapes.values():
        x, correct = (np.stack([parts[place][one] for place in places]) for one in (0, 1))
        for place, calibrator in zip(places, fit_together(x, correct), strict=True):
            fitted[place] = calibrator
    return fitted


def _without_regression(x: np.ndarray, correct: np.ndarray, method: Method) -> Fit | None:
    """The calibrator of a part that needs no logistic regression, else None."""
    if method == "identity":
        return Identity()
    if one_class := constant_fit(correct):
        return one_class
    if method == "isotonic" and x.shape[1] == 1:
        # A score may rank the wrong way round (a slope, say): the direction is fitted, as a weight.
        return isotonic_fit(x[:, 0], correct, "auto")
    return None


def constant_fit(correct: np.ndarray) -> Constant | None:
    """The calibrator of labels [n] of one class; null where there are two."""
    if correct.all() or not correct.any():
        return Constant((int(correct.sum()) + 1) / (len(correct) + 2))
    return None


def _logistic(
    x: np.ndarray,
    correct: np.ndarray,
    raw: bool,
    penalty: float | np.ndarray,
    least: np.ndarray | None,
) -> Iterator[Logistic]:
    """The logistic calibrators of features x [B, n, d] and labels [B, n]."""
    means, scales = x.mean(axis=1), feature_scales(x)
    # Always standardised, for numerical stability: a weight w of a raw feature is w * scale
    # of the standardised one, and the penalty falls on w.
    penalties = penalty * (scales**-2 if raw else np.ones_like(scales))
    standard = (x - means[:, None]) / scales[:, None]
    weights, intercepts = fit_logistic_regressions(standard, correct, penalties, least)
    if raw:
        weights = weights / scales
        intercepts = intercepts - (weights * means).sum(axis=1)
        means, scales = np.zeros_like(means), np.ones_like(scales)
    for mean, scale, weight, intercept in zip(means, scales, weights, intercepts, strict=True):
        yield Logistic(mean.tolist(), scale.tolist(), weight.tolist(), float(intercept))


def feature_scales(x: np.ndarray) -> np.ndarray:
    """Standard deviations (ddof 0) [B, d]; 1 where a feature is constant up to rounding error."""
    spread = x.std(axis=1)
    rounding = 10 * np.finfo(float).eps * np.abs(x).max(axis=1)
    return np.where(spread > rounding, spread, 1.0)


def isotonic_fit(
    score: np.ndarray, correct: np.ndarray, rising: bool | Literal["auto"]
) -> Isotonic:
    """The isotonic regression of labels [n] of both classes on scores [n].

    As scikit-learn's, which takes a second to load: equal scores count as their mean, and of a flat
    stretch its ends are stored. 'auto' takes the sign of Spearman's correlation.
    """
    from scipy.optimize import isotonic_regression  # slow to load, and not needed to predict

    places, member_of, counts = np.unique(score, return_inverse=True, return_counts=True)
    if rising == "auto":
        from scipy.stats import spearmanr  # slow to load, and seldom needed

        rising = len(places) > 1 and bool(spearmanr(score, correct).statistic >= 0)
    means = np.bincount(member_of, weights=correct) / counts
    values = isotonic_regression(means, weights=counts, increasing=rising).x
    flat = values[1:] == values[:-1]
    ends = np.append(True, ~flat) | np.append(~flat, True)
    return Isotonic(places[ends].tolist(), values[ends].tolist())


def as_json(calibrator: Fit) -> dict[str, object]:
    """Plain JSON from which `from_json` restores the calibrator; no pickle."""
    stored = {"kind": type(calibrator).__name__.lower(), **vars(calibrator)}
    if isinstance(calibrator, Mixture):
        stored["fits"] = [as_json(fit) for fit in calibrator.fits]
    return stored


def from_json(stored: Mapping[str, Any]) -> Fit:
    """The calibrator that `as_json` stored."""
    kinds = (Logistic, Isotonic, Constant, Identity, Mixture, Pooled)
    values = {key: value for key, value in stored.items() if key != "kind"}
    if "fits" in values:
        values["fits"] = [from_json(fit) for fit in values["fits"]]
    return {kind.__name__.lower(): kind for kind in kinds}[stored["kind"]](**values)
