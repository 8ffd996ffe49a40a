"""Predictors: one estimator of a calibrator with the ranking that decides which answers to keep.

1. `make_predictor(file, estimator, where)` makes one of a calibrator's file.
2. `Predictor.decide` says of all answers alike, by their inputs and what is known beside them, the
   probability, its bounds, whether to keep them, and why there is none.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tracecal.answers.reading import Reading
from tracecal.answers.record import ALSO, Record
from tracecal.calibrator.answer_ranking import AMOUNTS
from tracecal.calibrator.catalogue import FIXED_SCORE, LOG_RIDGE, inputs_with_columns
from tracecal.calibrator.schema import (
    CalibratedEstimator,
    CalibrationData,
    CalibratorFile,
    ErrorRateControl,
    ErrorRateThreshold,
    OverallThreshold,
    RecallThreshold,
    Reference,
)
from tracecal.calibrator.trace_kinds import reading_for
from tracecal.errors import InputError
from tracecal.estimators.custom import NO_CUSTOM, Custom
from tracecal.estimators.custom_scores import with_own_inputs
from tracecal.estimators.features import TRACE_INPUTS, bounded_inputs
from tracecal.estimators.registry import INPUTS, LOG_RIDGE_ALSO
from tracecal.fits.fit_settings import stated_shares
from tracecal.fits.fits import Fit, probability_bounds
from tracecal.fits.pooled import PART_FEATURE
from tracecal.guarantees.error_rate import NOT_OF_PARTS
from tracecal.io.log import LOGGER

WITHOUT = "it has no {}, which the calibrator takes beside the trace (--also)"
UNDEFINED = "undefined for this answer"
PROBABILITIES = ("probability", "lower", "upper")
# The target of the kept answers: an error rate, or a name such as 'recall:0.9'.
Target = float | str
TARGETS = {
    "error_rate": "an error rate",
    "overall_error": "an overall error rate",
    "recall": "a recall",
}


def target_of(
    error_rate: float | None, overall_error: float | None = None, recall: float | None = None
) -> Target | None:
    """The one target that is stated; None without any. Raises `InputError` for several.

    >>> target_of(0.2), target_of(None, recall=0.9)
    (0.2, 'recall:0.9')
    """
    shares = {"error_rate": error_rate, "overall_error": overall_error, "recall": recall}
    stated = [(name, share) for name, share in shares.items() if share is not None]
    if len(stated) > 1:
        raise InputError(
            "give one of --error-rate, --overall-error and --recall: each is a guarantee by itself."
        )
    for name, share in stated:
        stated_shares(f"--{name.replace('_', '-')}", [share])
        return share if name == "error_rate" else f"{name}:{share:g}"
    return None


def stated_target(target: Target | None) -> dict[str, float | None]:
    """A target as JSON values, by the name of its option.

    >>> stated_target(0.2), stated_target("overall_error:0.1")
    ({'error_rate': 0.2}, {'overall_error': 0.1})
    """
    if not isinstance(target, str):
        return {"error_rate": target}
    name, _, value = target.partition(":")
    return {name: float(value)}


class Kinds(NamedTuple):
    """What is known of n answers beside their inputs; None where it speaks against nothing.

    Attributes
    ----------
    no_answer : sequence [n]
        Why the model gave no answer.
    lacks : sequence [n]
        What is missing in the trace.
    undecided : sequence [n]
        Why no threshold decides about the answer; None without a target.
    n_parts : sequence [n]
        How many parts the answer has that each is a part of; 1 of whole answers.
    """

    no_answer: Sequence[str | None]
    lacks: Sequence[str | None]
    undecided: Sequence[str | None]
    n_parts: Sequence[int]


@dataclass(frozen=True)
class Predictor:
    """The probabilities of one estimator, and the ranking that guarantees targets.

    Attributes
    ----------
    estimator : str
        Its id.
    inputs : tuple of str
        Its columns, in the order of the fits.
    fits : CalibratedEstimator
        Its fits; `final`, on all labels, gives the probability.
    fitted_on : CalibrationData
        Description of the labelled answers.
    control : ErrorRateControl, optional
        The ranking and its thresholds; None if no error rate was tested.
    ranking_inputs : tuple of str
        The columns of the ranking.
    reference : Reference
        Ranking scores of the tested answers, for monitors to compare with.
    by_part : bool
        Whether the fits take the part's code as their last input, after `inputs`.
    custom : mapping
        Scores of the user's own estimators among the columns.
    held_out : mapping
        Cross-fitted probabilities of the labelled answers, by fingerprint.
    substitute : Predictor, optional
        The one for answers without entropies, where this one needs them and nobody named it.
    columns : tuple of str
        All columns of the fit and the ranking: first the trace's, then the user's own.
    reading : Reading
        How responses are read unless options are given, for the fit's vocabulary and columns.
    targets : mapping
        What the test of each target found; empty without a test.

    Examples
    --------
    >>> predictor = getfixture("calibrator")  # Calibrator.load("C.json").predictor("trace_plus")
    >>> predictor.estimator, predictor.ranked_by, [*predictor.thresholds][4:7]
    ('trace_plus', 'trace_plus', [0.4, 0.5, 'overall_error:0.05'])
    """

    estimator: str
    inputs: tuple[str, ...]
    fits: CalibratedEstimator = field(repr=False)
    fitted_on: CalibrationData
    control: ErrorRateControl | None = field(default=None, repr=False)
    ranking_inputs: tuple[str, ...] = ()
    reference: Reference = field(default_factory=Reference, repr=False)
    by_part: bool = False
    custom: Custom = field(default_factory=dict)
    held_out: Mapping[str, float] = field(default_factory=dict, repr=False)
    substitute: "Predictor | None" = field(default=None, repr=False)
    columns: tuple[str, ...] = field(init=False, repr=False)
    reading: Reading = field(init=False, repr=False)
    targets: Mapping[Target, ErrorRateThreshold | RecallThreshold | OverallThreshold] = field(
        init=False, repr=False
    )

    def __post_init__(self) -> None:
        names = dict.fromkeys([*self.inputs, *self.ranking_inputs])
        columns = tuple(sorted(names, key=lambda name: name.startswith(ALSO)))
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "reading", reading_for(self.fitted_on, None))
        object.__setattr__(self, "targets", self.control.targets if self.control else {})

    def target_of(
        self, error_rate: float | None, overall_error: float | None, recall: float | None = None
    ) -> Target | None:
        """The one target that is stated, which may not be tested; raises as `target_of`."""
        shares = {"error_rate": error_rate, "overall_error": overall_error, "recall": recall}
        stated = {name: share for name, share in shares.items() if share is not None}
        tested = (target for target in self.targets if stated_target(target) == stated)
        return next(tested, None) or target_of(**shares)

    def suited(self, has_entropies: bool) -> "Predictor":
        """The predictor of an answer with entropies, or without."""
        return self if has_entropies or self.substitute is None else self.substitute

    @property
    def final(self) -> Fit:
        """The fit on all labelled answers."""
        return self.fits.final

    @property
    def ranked_by(self) -> str | None:
        """Id of the ranking's estimator or of the fixed score; None without a test."""
        return self.control.ranked_by if self.control else None

    @cached_property
    def thresholds(self) -> dict[Target, float | None]:
        """Thresholds by tested target; None for a target without a guarantee."""
        return {target: entry.threshold for target, entry in self.targets.items()}

    @cached_property
    def labelled(self) -> frozenset[str]:
        """The fingerprints of the answers that were fitted on."""
        return frozenset(self.fitted_on.answers)

    @cached_property
    def warn_once(self) -> Callable[[str], None]:
        """Logs a warning about single answers the first time that it is called with it."""
        return cache(partial(LOGGER.warning, "%s"))

    @cached_property
    def also(self) -> list[str]:
        """The names of the user's own columns among the inputs."""
        return [name.removeprefix(ALSO) for name in self.columns if name.startswith(ALSO)]

    def extended(self, answers: pl.DataFrame) -> pl.DataFrame:
        """Answers with the user's own inputs among the columns."""
        return with_own_inputs(answers, self.columns, self.custom)

    @property
    def _ranks_by_part(self) -> bool:
        """Whether the ranking takes the part's code as an input, as fits do `by_part`."""
        return self.control is not None and self.control.features[-1] == PART_FEATURE

    def answer_inputs(self, record: Record, part: str | None = None) -> np.ndarray:
        """Compute the columns of an answer, and their lower and upper bounds: [3, d].

        Columns that are unknown are NaN. Raises the errors of `score_answer`.
        """
        surprisal, entropy = record.surprisal, record.entropy
        lower, upper = record.entropy_lower, record.entropy_upper
        if surprisal is None:
            return np.full((3, len(self.columns) + 1), np.nan)
        bounds = [] if lower is None or upper is None else [lower, upper]
        lists = [surprisal, *([] if entropy is None else [entropy, *bounds])]
        if len(set(map(len, lists))) > 1 or not len(surprisal):
            raise InputError(
                "an answer must have one surprisal and one entropy per token, at least 1"
            )
        # Rounded as traces are stored, so that an answer has one confidence everywhere.
        arrays = np.array(lists, dtype=np.float32).astype(float)
        if not (np.isfinite(arrays).all() and (arrays >= 0).all()):
            raise InputError("surprisals and entropies must be finite and not negative, in nats")
        names = [name for name in self.columns if not name.startswith(ALSO)]
        if missing := [name for name in names if name not in TRACE_INPUTS]:
            raise InputError(
                f"{self.estimator} needs {missing[0]}, which cannot be computed from one answer's "
                "two lists: only the workflow can compute it. Choose trace_plus, or another "
                "estimator of traces."
            )
        s, *entropies = arrays[:, None]
        x = bounded_inputs(names, s, *(entropies or [None]))[:, 0]
        if self.also:
            values = {column["name"]: column["value"] for column in record.also or ()}
            columns = np.array([values.get(name) for name in self.also], dtype=float)
            x = np.hstack([x, np.tile(columns, (len(x), 1))])
        return self.with_part(x, [part or ""] * len(x))

    def ranking_score(self, x: np.ndarray) -> np.ndarray:
        """Compute the ranking scores [n]; NaN where a column of the ranking is missing."""
        if self.control is None:
            return np.full(len(x), np.nan)
        inputs = _select(x, self._places[1])
        complete = np.isfinite(inputs).all(axis=1)
        score = self.control.fit.predict(np.where(complete[:, None], inputs, 0.0))
        return np.where(complete, score, np.nan)

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """The places of the inputs of the fits, and of those of the ranking, among the columns."""
        part = [len(self.columns)]
        fit, ranking = (
            [self.columns.index(name) for name in names] + (part if takes_part else [])
            for names, takes_part in (
                (self.inputs, self.by_part),
                (self.ranking_inputs, self._ranks_by_part),
            )
        )
        return fit, ranking

    def with_part(self, x: np.ndarray, parts: Iterable[str]) -> np.ndarray:
        """Append to `columns` x [n, d] the codes of the `parts` [n], if a fit takes them."""
        if self.fitted_on.parts is None or not (self.by_part or self._ranks_by_part):
            return x
        names = self.fitted_on.parts.names
        codes = [names.index(part) if part in names else -1 for part in parts]
        return np.column_stack([x, np.array(codes, dtype=float)])

    def decide(
        self, x: np.ndarray, kinds: Kinds, target: Target | None = None
    ) -> dict[str, Sequence[Any]]:
        """Say of n answers `probability`, its bounds, `keep` at a target and `reason`, [n] each.

        x [3, n, d] has the columns (see `with_part`) and their lower and upper bounds, NaN where
        unknown. The `reason` says why there is no probability or, at a target, no decision. An
        answer that was not given is not kept, nor are parts that no guarantee covers.
        """
        why_not = threshold = None
        score, limit = np.zeros(x.shape[1]), math.inf
        fit, inputs = self.final, _select(x, self._places[0])
        if target is not None:
            why_not, threshold = self.why_not(target), self.thresholds[target]
            score, limit = self.ranking_score(x[0]), self.control.most_parts or math.inf
        complete = np.isfinite(inputs[0]).all(axis=1)
        proba = np.full(inputs.shape[:2], np.nan)
        proba[:, complete] = probability_bounds(fit, inputs[:, complete])
        proba[:, [reason is not None for reason in kinds.no_answer]] = np.nan
        reasons = [
            no_answer
            or (None if has_inputs else self._lacking(row, lacks))
            or why_not
            or (None if has_score else lacks or UNDEFINED)
            or undecided
            for row, has_inputs, has_score, no_answer, lacks, undecided in zip(
                x[0],
                complete,
                ~np.isnan(score),
                *(kinds.no_answer, kinds.lacks, kinds.undecided),
                strict=True,
            )
        ]
        keep = (
            None
            if target is None
            else [
                False if no_answer else None if reason else bool(value >= threshold and n <= limit)
                for no_answer, reason, value, n in zip(
                    kinds.no_answer, reasons, score, kinds.n_parts, strict=True
                )
            ]
        )
        values = dict(zip(PROBABILITIES, proba, strict=True))
        return values | {"keep": keep, "reason": reasons}

    def _lacking(self, row: np.ndarray, lacks: str | None) -> str:
        """Say what an answer with the columns `row` [d] lacks for a probability."""
        missing = [name for name, value in zip(self.columns, row, strict=False) if np.isnan(value)]
        missing = [name for name in missing if name in self.inputs]
        if missing and all(name.startswith(ALSO) for name in missing):
            return WITHOUT.format(missing[0].removeprefix(ALSO))
        return lacks or UNDEFINED

    def why_not(self, target: Target) -> str | None:
        """Why no threshold guarantees a tested target; None where one does."""
        self.require_tested(target)
        entry = self.targets[target]
        return self.control.explain(entry) if entry.threshold is None else None

    def require_tested(self, target: Target) -> None:
        """Raise `InputError` where the calibrator was not tested for a target."""
        if target in self.targets:
            return
        if self.control is None:
            raise InputError(
                f"the calibrator has no guarantee of {self.estimator}: leave --estimator out, or "
                f"make one that ranks by it ('tracecal calibrate --estimator {self.estimator}')."
            )
        ((name, value),) = stated_target(target).items()
        if name == "overall_error" and self.fitted_on.parts is not None:
            raise InputError(NOT_OF_PARTS)
        stated = [stated_target(tested) for tested in self.targets]
        values = [f"{tested[name]:g}" for tested in stated if name in tested]
        raise InputError(
            f"the calibrator of {self.estimator} was not tested for {TARGETS[name]} of {value:g}; "
            f"tested: {', '.join(values) or 'none'}. Choose one of these, or calibrate for it."
        )


def _select(x: np.ndarray, places: list[int]) -> np.ndarray:
    """Select the columns at these places of x [..., d], without a copy where these are all."""
    return x if places == [*range(x.shape[-1])] else x[..., places]


def make_predictor(
    file: CalibratorFile, estimator: str | None, where: str, custom: Custom = NO_CUSTOM
) -> Predictor:
    """Make the predictor of an estimator, by default of the recommended one.

    The recommended one has a `substitute`. `custom` defines estimators that are not built in.
    Raises `InputError`, which calls the file `where`, where it lacks the estimator, or this version
    has other inputs for it.
    """
    if estimator is None:
        predictor = make_predictor(file, file.recommended(), where, custom)
        substitute = file.recommended(with_entropies=False)
        if substitute == predictor.estimator or substitute not in file.estimators:
            return predictor
        return replace(predictor, substitute=make_predictor(file, substitute, where, custom))
    if estimator not in file.estimators:
        names = ", ".join(file.estimators)
        raise InputError(f"{where} holds no calibrator of {estimator!r}; it has {names}.")
    fits = file.estimators[estimator]
    guaranteeing = file.guaranteeing(estimator)
    control = guaranteeing.risk_control if guaranteeing else None
    held_out = fits.held_out.by_fingerprint if fits.held_out else {}
    inputs = _inputs(estimator, _without_part(fits.features), file, custom)
    ranking_inputs: list[str] = []
    if control is not None:
        names = _without_part(control.features)
        ranking_inputs = _inputs(control.ranked_by, names, file, custom)
    columns = {*inputs, *ranking_inputs}
    return Predictor(
        estimator=estimator,
        inputs=tuple(inputs),
        fits=fits,
        fitted_on=file.fitted_on,
        control=control,
        ranking_inputs=tuple(ranking_inputs),
        reference=(guaranteeing and guaranteeing.reference) or Reference(),
        by_part=fits.features[-1] == PART_FEATURE,
        custom={name: score for name, score in custom.items() if f"scores.{name}" in columns},
        held_out=held_out,
    )


def _without_part(features: Sequence[str]) -> Sequence[str]:
    return features[:-1] if features[-1] == PART_FEATURE else features


def _inputs(
    estimator: str, features: Sequence[str], file: CalibratorFile, custom: Custom
) -> list[str]:
    """Return an estimator's inputs with their folders, which files leave out."""
    if estimator not in (FIXED_SCORE, *file.estimators):
        raise InputError(
            f"the calibrator ranks by {estimator!r} and holds no fit of it: calibrate again."
        )
    if estimator == FIXED_SCORE:
        inputs = [name for name in AMOUNTS if name.split(".", 1)[1] in features]
    elif (definition := file.estimators[estimator].definition) is not None:
        if estimator not in custom:
            raise InputError(
                f"{estimator!r} is an estimator of a file of your own: name it with --estimators."
            )
        if str(custom[estimator]) != definition:
            raise InputError(
                f"{estimator!r} is another expression than the calibrator was fitted on: calibrate "
                "again, or give the file as it was."
            )
        return [f"scores.{estimator}"]
    elif estimator == LOG_RIDGE_ALSO.id:
        of_trace = [name for name in INPUTS[LOG_RIDGE] if name.split(".", 1)[1] in features]
        inputs = inputs_with_columns(of_trace, file.fitted_on.columns)
    else:
        inputs = list(INPUTS.get(estimator, ()))
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
