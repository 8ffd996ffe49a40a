"""One estimator of a calibrator, ready to predict: its inputs, fits and thresholds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from tracecal.answers.record import ALSO
from tracecal.calibration.fits import Fit
from tracecal.calibrator.catalogue import INPUTS, LOG_RIDGE, inputs_with_columns
from tracecal.calibrator.schema import (
    CalibratedEstimator,
    CalibrationData,
    CalibratorFile,
    Reference,
)
from tracecal.errors import InputError
from tracecal.estimators.registry import LOG_RIDGE_ALSO
from tracecal.estimators.trace_inputs import NO_CUSTOM, Custom

# The target of the kept answers: an error rate, or a cascade's guarantee such as 'below:0.02'.
Target = float | str


def target_of(error_rate: float | None, guarantee: str | None) -> Target | None:
    """The target: an error rate, a guarantee or None. Raises `InputError` for both."""
    if guarantee is not None and error_rate is not None:
        raise InputError("give --error-rate or --promise: answers are kept by one of them.")
    return error_rate if guarantee is None else guarantee


@dataclass(frozen=True)
class Predictor:
    """The probabilities of one estimator and the thresholds that guarantee targets.

    `inputs` are its columns, in the order of the fits; `custom` defines those that are estimators
    of the user's own. `final` is fitted on all labelled answers and gives the probability.
    `thresholds` (by target; None where none has the guarantee) hold for the probabilities of
    `tested_fit`, the fit that left answers to test on; `reasons` say why one is None. Guarantees of
    a cascade are about the model `large`. Where fits are `by_part`, their last input, after
    `inputs`, is which part of an answer it is (`calibration.pooled`). `held_out` are probabilities
    of the labelled answers, by fingerprint, under fits that had not seen them.

    >>> predictor = getfixture("calibrator")  # Calibrator.load("C.json").predictor("trace_plus")
    >>> predictor.estimator, sorted(predictor.thresholds)
    ('trace_plus', [0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
    """

    estimator: str
    inputs: tuple[str, ...]
    fits: CalibratedEstimator = field(repr=False)
    fitted_on: CalibrationData
    by_part: bool = False
    custom: Custom = field(default_factory=dict)
    held_out: Mapping[str, float] = field(default_factory=dict, repr=False)

    @property
    def final(self) -> Fit:
        """The fit on all labelled answers."""
        return self.fits.final

    @property
    def tested_fit(self) -> Fit | None:
        """The fit whose thresholds were tested; None where none was."""
        control = self.fits.risk_control
        return None if control is None else self.fits.splits[control.split]

    @cached_property
    def thresholds(self) -> dict[Target, float | None]:
        """The threshold of each tested target; None where none guarantees it."""
        control, cascade = self.fits.risk_control, self.fits.cascade
        rates = control.thresholds if control else ()
        guarantees = cascade.thresholds if cascade else ()
        return {entry.error_rate: entry.threshold for entry in rates} | {
            entry.guarantee: entry.threshold for entry in guarantees
        }

    @cached_property
    def reasons(self) -> dict[Target, str]:
        """Why a tested target has no threshold, in a sentence."""
        control, cascade = self.fits.risk_control, self.fits.cascade
        reasons: dict[Target, str] = {}
        for rate in control.thresholds if control else ():
            if rate.threshold is None:
                reasons[rate.error_rate] = control.explain(rate)
        for entry in cascade.thresholds if cascade else ():
            if entry.reason:
                reasons[entry.guarantee] = entry.reason
        return reasons

    @property
    def large(self) -> str | None:
        """The large model of a cascade."""
        return self.fits.cascade.large if self.fits.cascade else None

    @property
    def reference(self) -> Reference:
        """Values of answers that the tested fit has not seen."""
        return self.fits.reference or Reference()

    @property
    def also(self) -> list[str]:
        """The names of the user's own columns among the inputs."""
        return [name.removeprefix(ALSO) for name in self.inputs if name.startswith(ALSO)]

    def with_part(self, x: np.ndarray, parts: Iterable[str]) -> np.ndarray:
        """Inputs x [n, d], and where the fits are `by_part` which of `parts` [n] each row is."""
        if not self.by_part or self.fitted_on.parts is None:
            return x
        names = self.fitted_on.parts.names
        codes = [names.index(part) if part in names else -1 for part in parts]
        return np.column_stack([x, np.array(codes, dtype=float)])

    def require_parts(self, scores_parts: bool) -> None:
        """Raise `InputError` unless the calibrator is of parts, or of whole answers, as asked."""
        if scores_parts and self.fitted_on.parts is None:
            raise InputError("the calibrator is of whole answers: calibrate on parts (--parts).")
        if not scores_parts and self.fitted_on.parts is not None:
            raise InputError(
                "the calibrator is of parts of answers: score each part of them, with "
                "'tracecal score' or score_parts."
            )

    def keeps(self, x: np.ndarray, target: Target) -> np.ndarray | None:
        """Whether answers with inputs x [n, d] are kept at a target, bool [n].

        None where no threshold guarantees it, see `why_not`. Raises `InputError` where
        the calibrator was not tested for it.
        """
        self.require_tested(target)
        threshold = self.thresholds[target]
        if threshold is None or self.tested_fit is None:
            return None
        return self.tested_fit.predict(x) >= threshold

    def why_not(self, target: Target) -> str | None:
        """Why no threshold guarantees a tested target; None where one does."""
        self.require_tested(target)
        return self.reasons.get(target)

    def require_tested(self, target: Target) -> None:
        """Raise `InputError` where the calibrator was not tested for a target."""
        if target in self.thresholds:
            return
        guarantees = [tested for tested in self.thresholds if isinstance(tested, str)]
        if isinstance(target, str):
            raise InputError(
                f"the calibrator of {self.estimator} has no guarantee {target!r}; it has: "
                f"{', '.join(guarantees) or 'none'}. Choose one of these, or make a calibrator "
                "with 'tracecal cascade --output'."
            )
        rates = [f"{tested:g}" for tested in self.thresholds if tested not in guarantees]
        raise InputError(
            f"the calibrator of {self.estimator} was not tested for an error rate of {target:g}; "
            f"tested: {', '.join(rates) or 'none'}. Choose one of these, or calibrate for it."
        )


def make_predictor(
    file: CalibratorFile, estimator: str | None, where: str, custom: Custom = NO_CUSTOM
) -> Predictor:
    """Make the predictor of an estimator, by default of the recommended one.

    `custom` defines estimators that are not built in. Raises `InputError`, which calls the file
    `where`, where it lacks the estimator, or this version has other inputs for it.
    """
    estimator = estimator or file.recommended()
    if estimator not in file.estimators:
        names = ", ".join(file.estimators)
        raise InputError(f"{where} holds no calibrator of {estimator!r}; it has {names}.")
    fits, by_part = file.estimators[estimator], file.by_part(estimator)
    features = fits.features[:-1] if by_part else fits.features
    return Predictor(
        estimator=estimator,
        inputs=tuple(_inputs(estimator, features, fits, custom, file.fitted_on)),
        fits=fits,
        fitted_on=file.fitted_on,
        by_part=by_part,
        custom={name: score for name, score in custom.items() if name == estimator},
        held_out=fits.held_out.by_fingerprint if fits.held_out else {},
    )


def _inputs(
    estimator: str,
    features: Sequence[str],
    fits: CalibratedEstimator,
    custom: Custom,
    fitted_on: CalibrationData,
) -> list[str]:
    """An estimator's inputs with their folders, which a calibrator's file leaves out."""
    if fits.definition is not None:
        if estimator not in custom:
            raise InputError(
                f"{estimator!r} is an estimator of a file of your own: name it with --estimators."
            )
        if str(custom[estimator]) != fits.definition:
            raise InputError(
                f"{estimator!r} is another expression than the calibrator was fitted on: calibrate "
                "again, or give the file as it was."
            )
        return [f"scores.{estimator}"]
    inputs = list(INPUTS.get(estimator, ()))
    if estimator == LOG_RIDGE_ALSO.id:
        of_trace = [name for name in INPUTS[LOG_RIDGE] if name.split(".", 1)[1] in features]
        inputs = inputs_with_columns(of_trace, fitted_on.columns)
    if [name.split(".", 1)[1] for name in inputs] != [*features]:
        raise InputError(
            f"the calibrator of {estimator!r} needs {', '.join(features)}, which are not this "
            "estimator's inputs in this version; calibrate it again."
        )
    return inputs


def load_predictor(path: str | Path, estimator: str | None = None) -> Predictor:
    """Load the predictor of one estimator from a file, by default of the recommended one.

    >>> load_predictor(getfixture("calibrator_file"), "min_prob").inputs
    ('scores.min_prob',)
    """
    return make_predictor(CalibratorFile.read(path), estimator, str(path))
