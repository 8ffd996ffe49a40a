"""Settings of `calibrate`: the configuration's keys that a calibrator is fitted by."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from tracecal.calibration.settings import Bootstrap, Calibration, RiskControl, Splits
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


def read_fit_settings(config: str | Path | Mapping[str, Any] | None) -> FitSettings:
    """Read the settings of a file, or of what it would hold; raises `InputError`."""
    if isinstance(config, str | Path):
        return parse(FitSettings, read_yaml(config) or {}, str(config))
    return parse(FitSettings, config or {}, "config")
