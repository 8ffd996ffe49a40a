"""A calibrator's file: what it was fitted on, its fits and its thresholds of target error rates."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tracecal.calibrate.fitted_on import FEATURE_VERSION, FittedOn
from tracecal.calibrate.protocol import Calibrator, Logistic, from_json
from tracecal.errors import InputError
from tracecal.registry import ESTIMATORS
from tracecal.schema import parse


@dataclass(frozen=True)
class Fitted:
    """One estimator's calibrator.

    `inputs` are its columns, in the order of the fits. `final` is fitted on all labelled answers
    and gives the probability. `thresholds` (target error rate -> threshold, null where no threshold
    can be promised) hold for the probabilities of `promised`, the fit that left answers to test on.
    """

    estimator: str
    inputs: tuple[str, ...]
    final: Calibrator
    promised: Calibrator | None
    thresholds: Mapping[float, float | None]
    fitted_on: FittedOn

    def keeps(self, x: np.ndarray, error_rate: float) -> np.ndarray | None:
        """Whether answers with inputs x [n, d] are kept at a target error rate, bool [n].

        Null where that rate cannot be promised. Raises `InputError` where the calibrator was not
        tested for it.
        """
        if error_rate not in self.thresholds:
            tested = ", ".join(f"{rate:g}" for rate in self.thresholds) or "none"
            raise InputError(
                f"the calibrator of {self.estimator} was not tested for an error rate of "
                f"{error_rate:g}; tested: {tested}. Choose one of these, or calibrate for it."
            )
        threshold = self.thresholds[error_rate]
        if threshold is None or self.promised is None:
            return None
        return self.promised.predict(x) >= threshold


def interval(
    calibrator: Calibrator, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and largest probability [n] of inputs between `low` and `high`, both [n, d].

    Every kind of calibrator is monotone in each of its inputs.
    """
    if isinstance(calibrator, Logistic):
        rises = np.array(calibrator.weights) >= 0
        low, high = np.where(rises, low, high), np.where(rises, high, low)
    ends = calibrator.predict(low), calibrator.predict(high)
    return np.minimum(*ends), np.maximum(*ends)


def load(path: str | Path, estimator: str = "trace_plus") -> Fitted:
    """The calibrator of one estimator from a file of the workflow or of `tracecal calibrate`.

    Raises `InputError` where there is none, where the file does not say what it was fitted on, or
    where its features have another version.
    """
    try:
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a calibrator's JSON ({error}).") from error
    if not isinstance(stored, dict) or "fitted_on" not in stored:
        raise InputError(
            f"{path} does not say what it was fitted on: it is not a calibrator, or it is from an "
            "earlier version. Make it again with the workflow or 'tracecal calibrate'."
        )
    return from_stored(stored, estimator, str(path))


def from_stored(stored: Mapping[str, Any], estimator: str, where: str) -> Fitted:
    """As `load`, from a file's content."""
    fitted_on = parse(FittedOn, stored["fitted_on"], f"{where}: fitted_on")
    if fitted_on.feature_version != FEATURE_VERSION:
        raise InputError(
            f"{where} was fitted on version {fitted_on.feature_version} of the features, and this "
            f"is version {FEATURE_VERSION}, whose values differ. Calibrate again."
        )
    if estimator not in stored:
        held = ", ".join(name for name in stored if name != "fitted_on")
        raise InputError(f"{where} holds no calibrator of {estimator!r}; it has {held}.")
    fits = stored[estimator]
    control = fits.get("risk_control") or {"thresholds": [], "split": None}
    tested = fits["splits"].get(str(control["split"]))
    return Fitted(
        estimator=estimator,
        inputs=tuple(_inputs(estimator, fits["features"])),
        final=from_json(fits["final"]),
        promised=from_json(tested) if tested else None,
        thresholds={entry["error_rate"]: entry["threshold"] for entry in control["thresholds"]},
        fitted_on=fitted_on,
    )


def _inputs(estimator: str, features: list[str]) -> list[str]:
    """An estimator's inputs with their folders, which a calibrator's file leaves out."""
    known = {entry.id: entry.inputs for entry in ESTIMATORS}
    if [name.split(".", 1)[1] for name in known.get(estimator, ())] != features:
        raise InputError(
            f"the calibrator of {estimator!r} needs {', '.join(features)}, which are not this "
            "estimator's inputs in this version; calibrate it again."
        )
    return known[estimator]
