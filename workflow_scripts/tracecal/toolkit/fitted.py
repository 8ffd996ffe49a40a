"""A calibrator's file: what it was fitted on, its fits and its thresholds of target error rates."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tracecal.calibrate.fitted_on import FEATURE_VERSION, FittedOn
from tracecal.calibrate.pooled import PART_FEATURE
from tracecal.calibrate.protocol import Calibrator, Logistic, Mixture, Pooled, from_json
from tracecal.errors import InputError
from tracecal.estimate.of_traces import NEED_ENTROPY
from tracecal.inputs.schema import parse
from tracecal.registry.estimators import ESTIMATORS
from tracecal.storage.checksum import beside, read_sum
from tracecal.storage.digest import digest
from tracecal.watch.monitors import Reference

DEFAULT = "trace_plus"
# Below so many labels the stack of seven predicts better than TRACE+ (docs/few_labels.md).
FEW_LABELS, WITH_FEW_LABELS = 100, "stack"
# For calibrators that do not say which estimators predicted best: the paper's strongest baseline.
FALLBACK = ("seq_logp", "len_norm_logp")
# What answers are kept by: an error rate, or a promise about a cascade, such as 'below:0.02'.
Target = float | str


@dataclass(frozen=True)
class Fitted:
    """One estimator's calibrator.

    `inputs` are its columns, in the order of the fits. `final` is fitted on all labelled answers
    and gives the probability. `thresholds` (by target, null where none could be certified) hold for
    the probabilities of `certified`, the fit that left answers to test on; `reasons` say why one is
    null. Promises about a cascade are about the model `large`. Where the fits are `by_part`, their
    last input, after `inputs`, is which part of an answer it is (`tracecal.calibrate.pooled`).
    `reference` are values of answers that `certified` has not seen.

    >>> fitted = getfixture("calibrator")  # load("C.json")
    >>> fitted.estimator, sorted(fitted.thresholds)
    ('trace_plus', [0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
    """

    estimator: str
    inputs: tuple[str, ...]
    final: Calibrator
    certified: Calibrator | None
    thresholds: Mapping[Target, float | None]
    reasons: Mapping[Target, str]
    fitted_on: FittedOn
    large: str | None = None
    by_part: bool = False
    reference: Reference = field(default_factory=Reference)

    def with_part(self, x: np.ndarray, parts: Sequence[str]) -> np.ndarray:
        """Inputs x [n, d], and where the fits are `by_part` which of `parts` [n] each row is."""
        if not self.by_part or self.fitted_on.parts is None:
            return x
        names = self.fitted_on.parts.names
        codes = [names.index(part) if part in names else -1 for part in parts]
        return np.column_stack([x, np.array(codes, dtype=float)])

    def require_parts(self, given: bool) -> None:
        """Raise `InputError` where the calibrator is of parts of answers and whole ones are given,
        or the reverse.
        """
        if given and self.fitted_on.parts is None:
            raise InputError("the calibrator is of whole answers: calibrate on parts (--parts).")
        if not given and self.fitted_on.parts is not None:
            raise InputError(
                "the calibrator is of parts of answers: score each part of them, with "
                "'tracecal score' or score_parts."
            )

    def keeps(self, x: np.ndarray, target: Target) -> np.ndarray | None:
        """Whether answers with inputs x [n, d] are kept at a target, bool [n].

        Null where no threshold could be certified for it, see `why_not`. Raises `InputError` where
        the calibrator was not tested for it.
        """
        self.require_tested(target)
        threshold = self.thresholds[target]
        if threshold is None or self.certified is None:
            return None
        return self.certified.predict(x) >= threshold

    def why_not(self, target: Target) -> str | None:
        """Why no threshold could be certified for a tested target; null where one was."""
        self.require_tested(target)
        return self.reasons.get(target)

    def require_tested(self, target: Target) -> None:
        """Raise `InputError` where the calibrator was not tested for a target."""
        if target in self.thresholds:
            return
        promises = [one for one in self.thresholds if isinstance(one, str)]
        if isinstance(target, str):
            raise InputError(
                f"the calibrator of {self.estimator} holds no promise {target!r}; it has: "
                f"{', '.join(promises) or 'none'}. Choose one of these, or make a calibrator with "
                "'tracecal cascade --output'."
            )
        tested = ", ".join(f"{one:g}" for one in self.thresholds if one not in promises) or "none"
        raise InputError(
            f"the calibrator of {self.estimator} was not tested for an error rate of {target:g}; "
            f"tested: {tested}. Choose one of these, or calibrate for it."
        )


def interval(
    calibrator: Calibrator, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds [n] of the probability of inputs between `low` and `high`, both [n, d].

    They are the smallest and largest probability: every kind of calibrator is monotone in each of
    its inputs. A mixture's bounds are those of its fits, mixed, and may be wider.
    """
    if isinstance(calibrator, Mixture):
        ends = [
            interval(fit, low[:, columns], high[:, columns])
            for columns, fit in zip(calibrator.columns, calibrator.fits, strict=True)
        ]
        least, most = np.tensordot(calibrator.weights, np.array(ends), axes=1)
        return least, most
    if isinstance(calibrator, Logistic | Pooled):
        rises = _rises(calibrator, low)
        low, high = np.where(rises, low, high), np.where(rises, high, low)
    ends = calibrator.predict(low), calibrator.predict(high)
    return np.minimum(*ends), np.maximum(*ends)


def _rises(calibrator: Logistic | Pooled, x: np.ndarray) -> np.ndarray:
    """Whether the probability of inputs x [n, d] rises with each, [n, d]."""
    if isinstance(calibrator, Logistic):
        return np.broadcast_to(np.array(calibrator.weights) >= 0, x.shape)
    weights, _ = calibrator.of_rows(x[:, -1])
    return np.column_stack([weights >= 0, np.ones(len(x), dtype=bool)])  # the last is no score


def load(path: str | Path, estimator: str | None = None) -> Fitted:
    """The calibrator of one estimator from a file of the workflow or of `tracecal calibrate`.

    Null: as `default_estimator`. Raises `InputError` where there is none, where the file does not
    match the checksum beside it or does not say what it was fitted on, or where its features have
    another version.

    >>> load(getfixture("calibrator_file"), "min_prob").inputs
    ('scores.min_prob',)
    """
    return from_stored(stored_in(path), estimator, str(path))


def stored_in(path: str | Path) -> dict[str, Any]:
    """The content of a calibrator's file; raises as `load`."""
    _require_unchanged(path)
    try:
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a calibrator's JSON ({error}).") from error
    if not isinstance(stored, dict) or "fitted_on" not in stored:
        raise InputError(
            f"{path} does not say what it was fitted on: it is not a calibrator, or it is from an "
            "earlier version. Make it again with the workflow or 'tracecal calibrate'."
        )
    return stored


def _require_unchanged(path: str | Path) -> None:
    """Raise `InputError` where a file does not match the checksum beside it, if there is one."""
    try:
        checksum, *_ = read_sum(path)
    except FileNotFoundError:
        return
    if checksum != digest(path):
        raise InputError(
            f"{path} does not match its checksum in {beside(path)}: it was changed or damaged. "
            "Calibrate again, or copy both files anew."
        )


def default_estimator(stored: Mapping[str, Any], entropies: bool = True) -> str:
    """The estimator that the file names, or TRACE+, where the calibrator has it and the answers
    have `entropies`; otherwise that of log-probabilities alone that predicted best where it was
    fitted.
    """
    usual = stored["fitted_on"].get("estimator") or DEFAULT
    if entropies and usual in stored:
        return usual
    ranked = [*stored["fitted_on"].get("ranking", ()), *FALLBACK]
    held = [entry for name in ranked for entry in ESTIMATORS if entry.id == name and name in stored]
    usable = [entry.id for entry in held if NEED_ENTROPY.isdisjoint(entry.inputs)]
    return usable[0] if usable else DEFAULT


def from_stored(stored: Mapping[str, Any], estimator: str | None, where: str) -> Fitted:
    """As `load`, from a file's content."""
    fitted_on = parse(FittedOn, stored["fitted_on"], f"{where}: fitted_on")
    if fitted_on.feature_version != FEATURE_VERSION:
        raise InputError(
            f"{where} was fitted on version {fitted_on.feature_version} of the features, and this "
            f"is version {FEATURE_VERSION}, whose values differ. Calibrate again."
        )
    estimator = estimator or default_estimator(stored)
    if estimator not in stored:
        held = ", ".join(name for name in stored if name != "fitted_on")
        raise InputError(f"{where} holds no calibrator of {estimator!r}; it has {held}.")
    fits = stored[estimator]
    control = fits.get("risk_control") or {"thresholds": [], "split": None}
    cascade = fits.get("cascade") or {"thresholds": [], "large": None}
    promised = {f"{one['promise']}:{one['promised']:g}": one for one in cascade["thresholds"]}
    tested = fits["splits"].get(str(control["split"]))
    by_part = fits["features"][-1:] == [PART_FEATURE]
    features = fits["features"][:-1] if by_part else fits["features"]
    return Fitted(
        estimator=estimator,
        by_part=by_part,
        inputs=tuple(_inputs(estimator, features)),
        final=from_json(fits["final"]),
        certified=from_json(tested) if tested else None,
        thresholds={entry["error_rate"]: entry["threshold"] for entry in control["thresholds"]}
        | {promise: entry["threshold"] for promise, entry in promised.items()},
        reasons={
            entry["error_rate"]: entry.get("reason") or _reason(entry, control)
            for entry in control["thresholds"]
            if entry["threshold"] is None
        }
        | {promise: entry["reason"] for promise, entry in promised.items() if entry["reason"]},
        fitted_on=fitted_on,
        large=cascade["large"],
        reference=Reference(**fits.get("reference", {})),
    )


def _reason(entry: Mapping[str, Any], control: Mapping[str, Any]) -> str:
    """Why there is no threshold for an error rate, from its entry of `risk_control`."""
    about = f"about {entry['enough']:,}" if entry.get("enough") else "far more"
    return (
        f"no threshold could be certified for an error rate of {entry['error_rate']:g} with "
        f"confidence {control['confidence']:g}: {control['groups']} questions were tested, and "
        f"{about} would be needed"
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
