"""Fits: calibrators that give probabilities from scores and features, and their JSON.

1. `predict` of each kind of fit gives probabilities; `probability_bounds` bounds them where inputs
   are known between bounds only.
2. Pydantic reads and writes them: `Coefficients` is the type of a fit in a file. `EstimatorFits`
   holds those of one estimator, one per split's calibration part and one on all labels, and checks
   them against its features.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, Self

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, model_validator

# Smallest probability of either label in a mean of log odds.
SMALLEST_PROBABILITY = 1e-6
Number = Annotated[float, Field(strict=True)]  # true and false are none
SWAPPED = np.array([0, 2, 1])  # inputs with their bounds the other way round
WEIGHT_TOLERANCE = 1e-6  # largest error of the sum of a mixture's weights


def sigmoid(margin: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-margin)), element by element; small values keep their digits."""
    small = np.exp(-np.abs(margin))
    return np.where(margin < 0, small, 1.0) / (1 + small)


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


class _Combined(_Checked):
    """A fit that combines the probabilities of its `fits`, which take the inputs at `columns`."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Probabilities [n] of inputs [n, d]."""
        return self.combine([fit.predict(x.take(places, axis=1)) for places, fit in self._members])

    @cached_property
    def _members(self) -> list[tuple[np.ndarray, "Fit"]]:
        members = zip(self.columns, self.fits, strict=True)
        return [(np.array(columns, dtype=int), fit) for columns, fit in members]


@dataclass(frozen=True)
class Mixture(_Combined):
    """Σ_k weights[k] · p_k, where `fits[k]` gives p_k from the inputs at `columns[k]`."""

    kind: Literal["mixture"] = field(default="mixture", kw_only=True)
    weights: list[Number]
    columns: list[list[int]]
    fits: list["Fit"]

    def combine(self, proba: Sequence[np.ndarray]) -> np.ndarray:
        """The probabilities of those of `fits`."""
        return sum(weight * values for weight, values in zip(self.weights, proba, strict=True))


@dataclass(frozen=True)
class LogOddsMean(_Combined):
    """σ(mean_k logit(p_k)), where `fits[k]` gives p_k from the inputs at `columns[k]`."""

    kind: Literal["log_odds_mean"] = field(default="log_odds_mean", kw_only=True)
    columns: list[list[int]]
    fits: list["Fit"]

    def combine(self, proba: Sequence[np.ndarray]) -> np.ndarray:
        """The probabilities of those of `fits`."""
        inner = np.minimum(np.maximum(proba, SMALLEST_PROBABILITY), 1 - SMALLEST_PROBABILITY)
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
Coefficients = Annotated[Fit, Field(discriminator="kind")]


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
        return fit.combine(
            [probability_bounds(member, x.take(places, axis=2)) for places, member in fit._members]
        )
    if isinstance(fit, Logistic | Pooled):
        x = np.where(_rises(fit, x[0]), x, x.take(SWAPPED, axis=0))
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


class EstimatorFits(BaseModel):
    """The fits of one estimator, which take the inputs `features` in this order."""

    # A later version may add keys, which stay in a file that is read and written again.
    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)

    features: tuple[str, ...] = Field(min_length=1)
    splits: dict[int, Coefficients] = Field(description="by split: fitted on its calibration part")
    final: Coefficients = Field(description="fitted on all labelled answers")

    @model_validator(mode="after")
    def _require_widths(self) -> Self:
        fits = {f"splits.{split}": fit for split, fit in self.splits.items()}
        for path, fit in (fits | {"final": self.final}).items():
            try:
                require_width(fit, len(self.features))
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None
        return self


def require_width(fit: Fit, width: int) -> None:
    """Raise `ValueError` unless a fit takes `width` inputs and its lists agree."""
    match fit:
        case Logistic():
            _require_lengths(fit, width, "means", "scales", "weights")
            _require_scales(fit)
        case Pooled():
            _require_lengths(fit, width - 1, "means", "scales", "common_weights")
            _require_lengths(fit, len(fit.names), "weights", "intercepts")
            if any(len(row) != width - 1 for row in fit.weights):
                raise ValueError(f"weights must have {width - 1} numbers for each name")
            _require_scales(fit)
        case Isotonic():
            _require_curve(fit, width)
        case Constant():
            if not 0 <= fit.probability <= 1:
                raise ValueError("probability must lie between 0 and 1")
        case Identity():
            if width != 1:
                raise ValueError(f"an identity takes 1 input, not {width}")
        case Mixture():
            _require_lengths(fit, len(fit.fits), "weights")
            if min(fit.weights, default=0) < 0 or abs(sum(fit.weights) - 1) > WEIGHT_TOLERANCE:
                raise ValueError("weights must be at least 0 and add up to 1")
            _require_members(fit, width)
        case LogOddsMean():
            if not fit.fits:
                raise ValueError("fits must have at least one")
            _require_members(fit, width)


def _require_lengths(fit: Fit, length: int, *names: str) -> None:
    for name in names:
        if len(getattr(fit, name)) != length:
            raise ValueError(f"{name} must have {length} numbers, not {len(getattr(fit, name))}")


def _require_scales(fit: Logistic | Pooled) -> None:
    if any(scale <= 0 for scale in fit.scales):
        raise ValueError("scales must be above 0")


def _require_curve(fit: Isotonic, width: int) -> None:
    if width != 1 or not fit.x or len(fit.x) != len(fit.y):
        raise ValueError("an isotonic fit takes 1 input, and x and y must be of one length")
    steps = np.diff(fit.y)
    if np.any(np.diff(fit.x) <= 0) or (np.any(steps < 0) and np.any(steps > 0)):
        raise ValueError("x must rise, and y must rise or fall throughout")
    if not all(0 <= value <= 1 for value in fit.y):
        raise ValueError("y must lie between 0 and 1")


def _require_members(fit: Mixture | LogOddsMean, width: int) -> None:
    _require_lengths(fit, len(fit.fits), "columns")
    for columns, member in zip(fit.columns, fit.fits, strict=True):
        if not all(0 <= column < width for column in columns):
            raise ValueError(f"columns must be places among {width} features")
        require_width(member, len(columns))
