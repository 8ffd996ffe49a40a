"""The one calibration protocol: a fit on labelled answers, probabilities for others.

Scalars and feature vectors go through the same code; a scalar is the one-feature case
(paper, section 3.5 and appendix D, "Calibration fairness").
"""

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

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
        return expit(self.intercept + standardised @ np.array(self.weights))


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
    """Where the labels have one class: Laplace's rule of succession, (n_1 + 1) / (n + 2)."""

    probability: float

    def predict(self, x: np.ndarray) -> np.ndarray:
        """The same probability for each row of x [n, d]."""
        return np.full(len(x), self.probability)


@dataclass(frozen=True)
class Identity:
    """A score that is taken for a probability as it stands, uncalibrated."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        """The scores [n, 1], within [0, 1], themselves."""
        return np.clip(x[:, 0], 0.0, 1.0)


Calibrator = Logistic | Isotonic | Constant | Identity


def fit(x: np.ndarray, correct: np.ndarray, method: Method) -> Calibrator:
    """Fit features x [n, d] (finite) to labels [n] (bool).

    platt: standardise (ddof 0, zero variance -> 1), logistic regression with scikit-learn's
    default penalty. platt_raw: the same without standardising. isotonic: for one feature;
    several fall back on platt. identity: nothing is fitted. Raises `ArithmeticError` where the
    fit does not converge.
    """
    if method == "identity":
        return Identity()
    if correct.all() or not correct.any():
        return Constant((int(correct.sum()) + 1) / (len(correct) + 2))
    if method == "isotonic" and x.shape[1] == 1:
        return _isotonic(x[:, 0], correct)
    raw = method == "platt_raw"
    mean = np.zeros(x.shape[1]) if raw else x.mean(axis=0)
    scale = np.ones(x.shape[1]) if raw else _scale(x)
    # Newton steps: scikit-learn's default solver stops short of the optimum.
    regression = LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            regression.fit((x - mean) / scale, correct)
        except ConvergenceWarning as warning:
            raise ArithmeticError(f"logistic calibration did not converge: {warning}") from warning
    weights, intercept = regression.coef_[0], regression.intercept_[0]
    return Logistic(mean.tolist(), scale.tolist(), weights.tolist(), float(intercept))


def _scale(x: np.ndarray) -> np.ndarray:
    """Standard deviations (ddof 0); 1 where a feature is constant up to rounding error."""
    spread = x.std(axis=0)
    rounding = 10 * np.finfo(float).eps * np.abs(x).max(axis=0)
    return np.where(spread > rounding, spread, 1.0)


def _isotonic(score: np.ndarray, correct: np.ndarray) -> Isotonic:
    # A score may rank the wrong way round (a slope, say); the direction is fitted like a weight.
    regression = IsotonicRegression(y_min=0, y_max=1, increasing="auto", out_of_bounds="clip")
    regression.fit(score, correct)
    return Isotonic(regression.X_thresholds_.tolist(), regression.y_thresholds_.tolist())


def as_json(calibrator: Calibrator) -> dict[str, object]:
    """Plain numbers that redo the prediction; no pickle."""
    return {"kind": type(calibrator).__name__.lower(), **asdict(calibrator)}


def from_json(stored: Mapping[str, Any]) -> Calibrator:
    """The calibrator that `as_json` wrote down."""
    kinds = {kind.__name__.lower(): kind for kind in (Logistic, Isotonic, Constant, Identity)}
    return kinds[stored["kind"]](**{key: stored[key] for key in stored if key != "kind"})
