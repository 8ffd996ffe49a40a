"""Settings of calibration, its evaluation and its guarantees: the configuration's keys.

Each start of a command reads this file: it loads little.
"""

from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PositiveInt, field_validator

from tracecal.errors import InputError
from tracecal.io.input_files import read_yaml
from tracecal.io.settings import Strict, parse

# What was drawn at random to be labelled, which each guarantee counts once.
Unit = Literal["questions", "answers"]
SEED = 2026
SMALLEST_RATE = 1e-6  # that an option may state


class Splits(Strict):
    count: PositiveInt = Field(
        20, le=10_000, description="random calibration/evaluation splits per task"
    )
    calibration_share: float = Field(
        0.35, gt=0, lt=1, description="share of a task's examples that calibrators are fitted on"
    )


class Calibration(Strict):
    method: Literal["platt", "platt_raw", "isotonic"] = Field(
        "platt",
        description="platt: logistic regression on standardised scores; platt_raw: on raw ones",
    )
    ece_bins: PositiveInt = Field(
        15, le=10_000, description="equal-width bins of the expected calibration error"
    )


Share = Annotated[float, Field(ge=SMALLEST_RATE, lt=1)]


def stated_shares(option: str, values: float | Sequence[float]) -> tuple[float, ...]:
    """One share or several, as a tuple; raises `InputError` where one is not a `Share`.

    >>> stated_shares("--error-rate", 0.1), stated_shares("--error-rate", [0.2, 0.1])
    ((0.1,), (0.2, 0.1))
    """
    shares = (values,) if isinstance(values, Real | str) else tuple(values)
    for share in shares:
        if not (isinstance(share, Real) and SMALLEST_RATE <= share < 1):
            text = f"{share:g}" if isinstance(share, Real) else repr(share)
            raise InputError(
                f"{option} {text}: expected a number from {SMALLEST_RATE:g} to below 1."
            )
    return shares


class RiskControl(Strict):
    """Thresholds with a guarantee on the errors among the answers kept."""

    error_rates: tuple[Share, ...] = Field(
        (0.05, 0.1, 0.2, 0.3, 0.4, 0.5),
        min_length=1,
        description="target error rates among kept answers (selective risk), one threshold each",
    )
    overall_errors: tuple[Share, ...] = Field(
        (0.05, 0.1, 0.2),
        description="target shares of all answers that remain wrong, where people mend the rest",
    )
    confidence: float = Field(
        0.9, gt=0, lt=1, description="confidence with which each guarantee holds; 1 - delta"
    )

    @field_validator("error_rates", "overall_errors")
    @classmethod
    def _sorted(cls, rates: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sorted(set(rates)))


class Bootstrap(Strict):
    """Intervals of differences between estimators."""

    resamples: PositiveInt = Field(
        1000, le=1_000_000, description="resamples of each task's groups of examples"
    )
    level: float = Field(0.95, gt=0, lt=1, description="share of the resamples in an interval")


class FitSettings(Strict):
    """How a calibrator is fitted; the keys are the configuration's own."""

    seed: int = Field(default=SEED, description="of splits, resamples and draws")
    splits: Splits = Splits()
    calibration: Calibration = Calibration()
    risk_control: RiskControl = RiskControl()
    bootstrap: Bootstrap = Bootstrap()

    def with_targets(
        self, error_rates: Sequence[float], overall_errors: Sequence[float] = ()
    ) -> Self:
        """The settings with these target rates, where they are given."""
        targets = {"error_rates": error_rates, "overall_errors": overall_errors}
        stated = {name: tuple(sorted({*rates})) for name, rates in targets.items() if rates}
        control = self.risk_control.model_copy(update=stated)
        return self.model_copy(update={"risk_control": control})

    def with_confidence(self, confidence: float) -> Self:
        """The settings with this confidence of each guarantee."""
        control = self.risk_control.model_copy(update={"confidence": round(confidence, 12)})
        return self.model_copy(update={"risk_control": control})


def read_fit_settings(config: str | Path | Mapping[str, Any] | None) -> FitSettings:
    """Read the settings of a file or a mapping, by default all defaults; raises `InputError`."""
    if config is None:
        return FitSettings()
    if isinstance(config, str | Path):
        return parse(FitSettings, read_yaml(config) or {}, str(config))
    return parse(FitSettings, config, "config")
