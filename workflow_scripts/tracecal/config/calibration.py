"""Settings of calibration, its evaluation and its guarantees."""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt, field_validator

from tracecal.inputs.schema import Strict


class Splits(Strict):
    count: PositiveInt = Field(20, description="random calibration/evaluation splits per task")
    calibration_share: float = Field(
        0.35, gt=0, lt=1, description="share of a task's examples that calibrators are fitted on"
    )


class Calibration(Strict):
    method: Literal["platt", "platt_raw", "isotonic"] = Field(
        "platt",
        description="platt: logistic regression on standardised scores; platt_raw: on raw ones",
    )
    ece_bins: PositiveInt = Field(
        15, description="equal-width bins of the expected calibration error"
    )


class RiskControl(Strict):
    """Thresholds on TRACE+ with a guarantee on the errors among the answers kept."""

    error_rates: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = Field(
        (0.05, 0.1, 0.2, 0.3, 0.4, 0.5),
        min_length=1,
        description="target error rates among kept answers (selective risk), one threshold each",
    )
    confidence: float = Field(
        0.9,
        gt=0,
        lt=1,
        description="probability with which each threshold keeps its guarantee; 1 - delta",
    )

    simultaneous: bool = Field(
        False,
        description="true: the thresholds of all models, tasks and error rates keep their "
        "guarantees at once with that probability; false: each by itself",
    )

    def together(self, pairs: int) -> int:
        """How many guarantees are to hold at once in a run of so many (model, task) pairs."""
        return pairs * len(self.error_rates) if self.simultaneous else 1

    @field_validator("error_rates")
    @classmethod
    def _sorted(cls, rates: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sorted(set(rates)))


class Bootstrap(Strict):
    """Intervals of differences between estimators."""

    resamples: PositiveInt = Field(1000, description="resamples of each task's groups of examples")
    level: float = Field(0.95, gt=0, lt=1, description="share of the resamples in an interval")
