"""The fits of one estimator in a calibrator's file, checked against its features.

`EstimatorFits` holds one fit per split's calibration part and one on all labels. `Coefficients` is
the type of a fit in the schema, and its `kind` names a class of `calibration.fits`. `require_width`
checks the number of a fit's inputs.
"""

from collections.abc import Iterator
from typing import Annotated, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tracecal.calibration.fits import (
    Constant,
    Fit,
    Identity,
    Isotonic,
    Logistic,
    LogOddsMean,
    Mixture,
    Pooled,
)

Coefficients = Annotated[
    Logistic | Isotonic | Constant | Identity | Mixture | LogOddsMean | Pooled,
    Field(discriminator="kind"),
]
WEIGHT_TOLERANCE = 1e-6  # largest error of the sum of a mixture's weights


class EstimatorFits(BaseModel):
    """The fits of one estimator, which take the inputs `features` in this order."""

    # A later version may add keys, which stay in a file that is read and written again.
    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)

    features: tuple[str, ...] = Field(min_length=1)
    splits: dict[int, Coefficients] = Field(description="by split: fitted on its calibration part")
    final: Coefficients = Field(description="fitted on all labelled answers")

    @model_validator(mode="after")
    def _require_widths(self) -> Self:
        for path, fit in self._places():
            try:
                require_width(fit, len(self.features))
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None
        return self

    def _places(self) -> Iterator[tuple[str, Coefficients]]:
        yield from ((f"splits.{split}", fit) for split, fit in self.splits.items())
        yield "final", self.final


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
