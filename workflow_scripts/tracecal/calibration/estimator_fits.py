"""One estimator's fits: of each split's calibration part, and of all labels."""

from collections.abc import Iterator
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tracecal.calibration.coefficients import Coefficients, require_width


class EstimatorFits(BaseModel):
    """The fits of one estimator, which take the inputs `features` in this order."""

    # A later version may add keys, which stay in a file that is read and written again.
    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)

    features: tuple[str, ...] = Field(min_length=1)
    splits: dict[int, Coefficients] = Field(description="by split: fitted on its calibration part")
    final: Coefficients = Field(description="fitted on all labelled answers")

    @model_validator(mode="after")
    def _require_widths(self) -> Self:
        for place, fit in self._places():
            try:
                require_width(fit, len(self.features))
            except ValueError as error:
                raise ValueError(f"{place}: {error}") from None
        return self

    def _places(self) -> Iterator[tuple[str, Coefficients]]:
        yield from ((f"splits.{split}", fit) for split, fit in self.splits.items())
        yield "final", self.final
