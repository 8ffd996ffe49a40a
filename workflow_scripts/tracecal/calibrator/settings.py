"""Settings of `calibrate`: the configuration's keys that a calibrator is fitted by."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from tracecal.calibration.settings import (
    Bootstrap,
    Calibration,
    RiskControl,
    Splits,
    require_shares,
)
from tracecal.io.input_files import read_yaml
from tracecal.io.settings import Strict, parse

SEED = 2026


class FitSettings(Strict):
    """How a calibrator is fitted; the keys are the configuration's own."""

    seed: int = Field(default=SEED, description="of splits, resamples and draws")
    splits: Splits = Splits()
    calibration: Calibration = Calibration()
    risk_control: RiskControl = RiskControl()
    bootstrap: Bootstrap = Bootstrap()

    def with_targets(self, error_rates: Sequence[float]) -> Self:
        """The settings with these target error rates, where they are given."""
        for rate in error_rates:
            require_shares({"--error-rate": rate})
        if not error_rates:
            return self
        rates = {"error_rates": tuple(sorted({*error_rates}))}
        control = self.risk_control.model_copy(update=rates)
        return self.model_copy(update={"risk_control": control})


def read_fit_settings(config: str | Path | Mapping[str, Any] | None) -> FitSettings:
    """Read the settings of a file or a mapping, by default all defaults; raises `InputError`."""
    if config is None:
        return FitSettings()
    if isinstance(config, str | Path):
        return parse(FitSettings, read_yaml(config) or {}, str(config))
    return parse(FitSettings, config, "config")
