"""The calibrator's file: its schema reads it, checks it and writes it.

1. `CalibratorFile.read("C.json")` checks the file's checksum, form and numbers.
2. `file.fitted_on` says what was fitted on, `file.estimators["log_ridge"]` holds one estimator.
3. `file.write("copy.json")` writes it with a checksum of its content.

The files of `tracecal calibrate` and of the workflow have this form.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from tracecal.answers.parts.parts import Parts
from tracecal.answers.raw_answer import Known, Reasoning
from tracecal.answers.tokens import StopToken
from tracecal.errors import InputError
from tracecal.estimators.features import ENTROPY_INPUTS
from tracecal.estimators.registry import INPUTS, LOG_RIDGE_ALSO
from tracecal.fits.fit_settings import Unit
from tracecal.fits.fits import Coefficients, EstimatorFits, Number, require_width
from tracecal.io.input_files import parsed_json
from tracecal.io.log import LOGGER
from tracecal.io.regular_files import read_regular, write_text
from tracecal.io.settings import Strict, parse

# Increase it whenever a feature's definition changes, so that older calibrators are refused.
FEATURE_VERSION = 1
CARD_VERSION = 2  # of the file's form
MOST_BYTES = 2**28  # of a calibrator's file
LARGEST, DEEPEST = 2**63, 50  # size of a number, and lists and mappings within one another
# The workflow's files recommend no estimator: the first one of these in the file is used.
DEFAULT_ESTIMATORS, FALLBACKS = ("mean_of_three", "trace_plus"), ("seq_logp", "len_norm_logp")
WITHOUT_ENTROPIES = "surprisal_ridge"

# Keys of `fitted_on` that a file leaves out where nothing is known.
OPTIONAL = (
    "checksum",
    "groups",
    "estimator",
    "gain",
    "looks",
    "planned_looks",
    "dates",
    "parts",
    "also",
    "row_tasks",
    "decodings",
    "without_probability",
)

Share = Annotated[Number, Field(ge=0, le=1)]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class FurtherColumn(Strict):
    """One of the user's own columns: a number or a verdict, larger for more trustworthy answers."""

    name: str
    path: str = Field(description="where it is in a row")


class Look(Strict):
    """A calibration on growing labels: each takes a share of the chance of a false guarantee."""

    labels: int = Field(ge=1, description="labelled answers")
    level: Share = Field(description="largest probability that a guarantee of it is false")
    digest: str = Field(description="of their fingerprints and verdicts")


class CalibrationData(Strict):
    """Description of the labelled answers that a calibrator was fitted on, and of their choices."""

    model_config = ConfigDict(allow_inf_nan=False)

    card_version: Literal[2] = Field(CARD_VERSION, description="of this file's form")
    checksum: str | None = Field(
        None, description="SHA-256 of the file's content without this key; null: not stated"
    )
    model: str | None = Field(None, description="its name; null: not known")
    known_as: tuple[str, ...] = Field((), description="other names of the same model")
    revision: str | None = None
    task: str
    row_tasks: tuple[str, ...] = Field((), description="the tasks that its rows name")
    stop_token: StopToken = "included"
    processed: Known = "no"
    decodings: tuple[str, ...] = Field(
        (), description="what requests state that changes probabilities; an empty text: nothing"
    )
    reasoning: Reasoning = "none"
    entropy: Literal["exact", "top-k", "none"] = "exact"
    top_k: PositiveInt | None = Field(None, description="log-probabilities listed per token")
    vocabulary: PositiveInt | None = Field(None, description="the model's number of tokens")
    vocabulary_from: Literal["stated", "model", "assumed"] = Field(
        "stated", description="whether it was stated, follows from the model, or is assumed"
    )
    feature_version: int = FEATURE_VERSION
    n: int = Field(ge=1, description="labelled answers")
    groups: PositiveInt | None = Field(None, description="their questions; null: not known")
    unit: Unit = Field(
        "questions", description="what was drawn at random, which each guarantee counts once"
    )
    base_rate: Share = Field(description="the share of correct answers")
    without_probability: tuple[tuple[str, PositiveInt], ...] = Field(
        (), description="why labelled answers enter no fit and no test, with how many these are"
    )
    ranking: tuple[str, ...] = Field((), description="estimators, smallest Brier score first")
    estimator: str | None = Field(
        None, description="the one to use; null: the mean of three, or else TRACE+"
    )
    gain: tuple[float, float, float] | None = Field(
        None,
        description="by how much its Brier score is below that of the default, and the ends of the "
        "interval; null where it is the default, or where that could not be used",
    )
    answers: tuple[str, ...] = Field((), repr=False, description="fingerprints of the answers")
    looks: tuple[Look, ...] = Field((), description="at these labels as they grew, this one last")
    planned_looks: PositiveInt | None = Field(None, description="how many were planned at first")
    dates: tuple[Day, Day] | None = Field(
        None, description="the first and the last day (UTC) of these answers; null: not known"
    )
    parts: Parts | None = Field(None, description="which parts of answers; null: whole answers")
    also: tuple[FurtherColumn, ...] = Field((), description="taken beside the trace")
    not_for: tuple[str, ...] = Field((), repr=False, description="`exclusions`, for readers")

    # By identity: each answer looks up what this says of its kind, and the fingerprints are many.
    __hash__ = object.__hash__

    @property
    def columns(self) -> dict[str, str]:
        """The paths of the further columns, by name."""
        return {column.name: column.path for column in self.also}

    @property
    def n_missing(self) -> int:
        """How many labelled answers have no probability."""
        return sum(n for _, n in self.without_probability)

    @property
    def missing_reasons(self) -> str:
        """Why labelled answers have no probability, each reason with their number."""
        return "; ".join(f"{reason} ({n:,})" for reason, n in self.without_probability)

    def describe_missing(self) -> str | None:
        """How many labelled answers have no probability, and why; None where all have one."""
        if not self.n_missing:
            return None
        return (
            f"{self.n_missing:,} of {self.n:,} labelled answers have no "
            f"probability, and so enter no fit and no test: {self.missing_reasons}"
        )

    def describe_repeats(self) -> str | None:
        """What a guarantee counts where questions have several labelled answers; else None."""
        if self.parts is not None or self.groups is None or self.groups == self.n:
            return None
        counts = f"{self.n:,} labelled answers to {self.groups:,} questions"
        if self.unit == "answers":
            return f"{counts}: each answer counts, as they were drawn one by one."
        return f"{counts}: each question counts once. Counted by answers the share may differ."

    def exclusions(self) -> tuple[str, ...]:
        """What a calibrator must not be used for, a sentence each."""
        model = self.model or "the model that gave the labelled answers"
        revision = f", revision {self.revision}" if self.revision else ""
        return (
            f"Answers of another model, revision or quantisation than {model}{revision}.",
            f"Answers to another task than {self.task}, or to its questions drawn in another way.",
            "Answers to changed prompts, or decoded with other settings.",
            f"Other kinds of traces than these: {', '.join(self.trace_kinds())}.",
            *(
                f"Answers whose {name} was made in another way than that of the labelled answers."
                for name in self.columns
            ),
            "Parts of answers: it was fitted on whole answers."
            if self.parts is None
            else "Whole answers, and other parts than those it names.",
            "Certifying a single answer: a guarantee is about the share of all kept answers.",
        )

    def trace_kinds(self) -> list[str]:
        """The kind of the traces, in words."""
        stop_tokens = {"included": "with the stop token", "absent": "without the stop token"}
        raw = {"no": "raw probabilities", "yes": "probabilities after temperature or penalties"}
        reasoning = {
            "none": "no reasoning before the answer",
            "apart": "without the reasoning before the answer",
            "within": "with the reasoning before the answer",
            "alone": "of the reasoning before the answer alone",
        }
        entropies = {
            "exact": "exact entropies",
            "top-k": f"entropies from the {self.top_k or 'few'} likeliest tokens",
            "none": "no entropies",
        }
        return [
            stop_tokens.get(self.stop_token, "not known whether with the stop token"),
            raw.get(self.processed, "not known whether probabilities are raw"),
            reasoning[self.reasoning],
            entropies[self.entropy],
        ]

    @model_serializer(mode="wrap")
    def _without_unstated(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is not stated, and state what the calibrator must not be used for."""
        content = handler(self) | {"not_for": self.exclusions()}
        unstated = {name for name in OPTIONAL if not content[name]}
        usual = {"reasoning": "none", "vocabulary_from": "stated"}
        unstated |= {name for name, value in usual.items() if content[name] == value}
        return {name: value for name, value in content.items() if name not in unstated}


class _Extensible(BaseModel):
    """Keys that a later version may add are kept as they are."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)


class ErrorRateThreshold(_Extensible):
    """A target error rate, the threshold that guarantees it, and what the test observed."""

    error_rate: Share
    tested_rate: Share | None = Field(
        None, description="by whose test the threshold passed: the target, or a smaller rate"
    )
    threshold: Number | None = Field(description="the score from which to keep; null: none")
    n: int = Field(ge=0, description="answers tested")
    kept: int = Field(ge=0)
    wrong: int = Field(ge=0, description="of those kept")
    allowed: int | None = Field(
        None, description="how many of those kept may be wrong; null: of parts, or unknown"
    )
    coverage: Share = Field(description="share kept")
    error: Share | None = Field(description="share wrong of the kept")
    enough: int | None = Field(
        None, description="labelled questions that would do where there is none"
    )
    reason: str | None = Field(None, description="why there is none")

    @property
    def target(self) -> float:
        """Its name among `targets`."""
        return self.error_rate

    @model_validator(mode="after")
    def _require_counts(self) -> Self:
        if not self.wrong <= self.kept <= self.n:
            raise ValueError("wrong must be at most kept, and kept at most n")
        if self.threshold is not None and self.error is None:
            raise ValueError("a threshold needs an error")
        return self


class ValueErrors(_Extensible):
    """The tested answers with one value of a column, at the threshold of an error rate."""

    error_rate: Share
    value: str
    n: int = Field(ge=0, description="answers tested")
    kept: int = Field(ge=0)
    wrong: int = Field(ge=0, description="of those kept")
    low: Share | None = Field(None, description="exact interval of the error rate; null: none kept")
    high: Share | None = None


class ErrorsByColumn(_Extensible):
    """Errors by the values of a column of the labelled answers' rows."""

    column: str = Field(description="its path in a row")
    values: tuple[ValueErrors, ...]


class RecallThreshold(_Extensible):
    """A target share of the right answers to keep, and the threshold that guarantees it."""

    recall: Share
    threshold: Number | None = Field(description="the score from which to keep; null: none")
    right: int = Field(ge=0, description="right answers tested")
    coverage: Share = Field(description="share of all answers kept")
    reason: str | None = Field(None, description="why there is none")

    @property
    def target(self) -> str:
        """Its name, such as ``recall:0.9``."""
        return f"recall:{self.recall:g}"


class OverallThreshold(_Extensible):
    """A share of all answers that may remain wrong where people check and mend those not kept."""

    error_rate: Share
    threshold: Number | None = Field(description="the score from which to keep; null: none")
    coverage: Share = Field(description="share kept, which nobody checks")
    n: int = Field(ge=0, description="answers tested, with a score or without")
    allowed: int | None = Field(None, description="how many of them may be kept and wrong")
    is_lottery: bool = Field(
        False, description="whether those kept are about as often wrong as the others"
    )
    reason: str | None = Field(None, description="why there is none")

    @property
    def target(self) -> str:
        """Its name, such as ``overall_error:0.1``."""
        return f"overall_error:{self.error_rate:g}"

    @property
    def unchecked_rate(self) -> float:
        """The share of wrong answers that is guaranteed among those that nobody checks."""
        return min(1.0, self.error_rate / self.coverage) if self.coverage else 1.0


class ErrorRateControl(_Extensible):
    """Thresholds on a ranking score: docs/reference/card.md."""

    ranked_by: str = Field(description="an estimator, or 'fixed_score', which no label has fitted")
    features: tuple[str, ...] = Field(min_length=1, description="inputs of the ranking score")
    fit: Coefficients = Field(description="maps them to the score, from 0 to 1")
    split: int | None = Field(None, description="of a run: whose evaluation part tested")
    confidence: Share
    joint_confidence: Share | None = Field(
        None, description="with which the guarantees of all error rates hold at once"
    )
    looks_confidence: Share | None = Field(
        None, description="that no guarantee of several looks at growing labels is false"
    )
    groups: int = Field(ge=0, description="questions, or answers, that tested")
    most_parts: PositiveInt | None = Field(
        None, description="parts of answers with more parts are never kept; null: of whole answers"
    )
    coverage_of: int | None = Field(
        None, description="answers of which coverage is a share; null: those tested"
    )
    about: str | None = Field(None, description="what the guarantees are about")
    thresholds: tuple[ErrorRateThreshold, ...]
    recall: RecallThreshold | None = Field(None, description="null: none was asked for")
    overall: tuple[OverallThreshold, ...] = Field(
        (), description="overall error rates; none of parts of answers"
    )
    overall_confidence: Share | None = Field(
        None, description="with which the overall error rates hold at once"
    )
    by: ErrorsByColumn | None = Field(None, description="null: no column was named")
    risk_coverage: tuple[tuple[Share, Share], ...] = Field(
        (), description="pairs of share kept and share wrong of the kept, of the tested answers"
    )

    @model_validator(mode="after")
    def _require_width(self) -> Self:
        require_width(self.fit, len(self.features))
        return self

    @model_serializer(mode="wrap")
    def _without_unstated(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        content = handler(self)
        optional = type(self).model_fields.keys() - {"about", "risk_coverage"}
        is_unstated = {name for name in optional if content[name] in (None, (), [])}
        return {name: value for name, value in content.items() if name not in is_unstated}

    @property
    def stated_confidence(self) -> float:
        """The confidence that is printed: that no guarantee so far is false."""
        return self.confidence if self.looks_confidence is None else self.looks_confidence

    def at_once(self, confidence: float | None) -> float:
        """A confidence that several guarantees of this look hold at once, less that of others."""
        earlier = self.confidence - self.stated_confidence
        return max(0.0, round((confidence or 0.0) - earlier, 12))

    @property
    def targets(self) -> dict[float | str, ErrorRateThreshold | RecallThreshold | OverallThreshold]:
        """All tested targets: error rates by themselves, the others by their names."""
        entries = [*self.thresholds, *self.overall, *([self.recall] if self.recall else [])]
        return {entry.target: entry for entry in entries}

    def explain(self, entry: ErrorRateThreshold | RecallThreshold | OverallThreshold) -> str:
        """Say why an entry has no threshold."""
        if entry.reason or not isinstance(entry, ErrorRateThreshold):
            return entry.reason or "no threshold guarantees it"
        needed = f"about {entry.enough:,}" if entry.enough else "far more"
        return (
            f"no threshold guarantees an error rate of {entry.error_rate:g} with "
            f"confidence {self.confidence:g}: {self.groups} questions were tested, and "
            f"{needed} would be needed"
        )


@dataclass(frozen=True)
class Reference:
    """Ranking scores and lengths of answers that tested, for monitors to compare with."""

    probability: tuple[Share, ...] = ()
    length: tuple[Annotated[float, Field(ge=1)], ...] = ()

    def __post_init__(self) -> None:
        if len(self.probability) != len(self.length):
            raise ValueError("probability and length must be of one length")


class HeldOut(_Extensible):
    """The labelled answers with their probabilities by fits that had not seen them."""

    group: tuple[int, ...]
    correct: tuple[bool, ...]
    fold: tuple[int | None, ...] = Field(description="null: no probability")
    probability: tuple[Share | None, ...]
    answer: tuple[str | None, ...] | None = Field(None, description="fingerprints")
    fixed: tuple[Share | None, ...] | None = Field(None, description="their fixed scores")
    by_fifths: tuple[Share | None, ...] | None = Field(
        None, description="by fits of what ranks on a fifth of the labels; null: no fit ranks"
    )

    @model_validator(mode="after")
    def _require_equal_lengths(self) -> Self:
        columns = [getattr(self, name) for name in type(self).model_fields]
        if len({len(column) for column in columns if column is not None}) > 1:
            raise ValueError("group, correct, fold, probability, … must be of one length")
        return self

    @property
    def by_fingerprint(self) -> dict[str, float]:
        """The probability of each answer that has one, by its fingerprint."""
        pairs = zip(self.answer or (), self.probability, strict=False)
        return {
            answer: proba for answer, proba in pairs if answer is not None and proba is not None
        }


class CalibratedEstimator(EstimatorFits):
    """One estimator: its fits, its guarantees, and reference values of its answers."""

    risk_control: ErrorRateControl | None = None
    reference: Reference | None = None
    definition: str | None = Field(None, description="of an estimator of the user's own")
    held_out: HeldOut | None = None

    @model_serializer(mode="wrap")
    def _without_unstated(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}


class CalibratorFile(BaseModel):
    """What was fitted on, and an estimator under each other key."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)

    fitted_on: CalibrationData
    __pydantic_extra__: dict[str, CalibratedEstimator]

    @property
    def estimators(self) -> dict[str, CalibratedEstimator]:
        """The estimators by id, in the order of the file."""
        return self.model_extra or {}

    @classmethod
    def of(cls, fitted_on: CalibrationData, estimators: Mapping[str, CalibratedEstimator]) -> Self:
        """Make the file of these estimators."""
        return cls(fitted_on=fitted_on, **estimators)

    def with_keys(self, estimator: str, **keys: Any) -> Self:
        """The file with these keys of an estimator."""
        changed = self.estimators[estimator].model_copy(update=keys)
        return self.of(self.fitted_on, self.estimators | {estimator: changed})

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a file; raises `InputError` where it is no calibrator, or was changed."""
        try:
            content = parsed_json(read_regular(path, MOST_BYTES), finite=True)
        except InputError:
            raise
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read as a calibrator's JSON ({error}).") from error
        return cls.parse(content, str(path))

    @classmethod
    def parse(cls, content: Any, where: str) -> Self:
        """Check a file's content; raises `InputError`, which calls it `where`."""
        fitted_on = content.get("fitted_on") if isinstance(content, dict) else None
        if not isinstance(fitted_on, dict):
            raise InputError(
                f"{where} does not say what it was fitted on: it is not a calibrator, or it is "
                "from an earlier version. Make it again with the workflow or 'tracecal calibrate'."
            )
        if (version := fitted_on.get("card_version", 1)) != CARD_VERSION:
            raise InputError(f"{where} was made by tracecal {version}: calibrate again.")
        try:
            _require_storable(content)
        except ValueError as error:
            raise InputError(f"{where} cannot be read as a calibrator ({error}).") from error
        _require_unchanged(content, where)
        data = parse(CalibrationData, fitted_on, f"{where}: fitted_on")
        if data.feature_version != FEATURE_VERSION:
            raise InputError(
                f"{where} was fitted on version {data.feature_version} of the features, and this "
                f"is version {FEATURE_VERSION}, whose values differ. Calibrate again."
            )
        try:
            file = cls.model_validate(content | {"fitted_on": data})
        except ValidationError as error:
            raise InputError(_describe(error, where)) from error
        if data.checksum is None:
            LOGGER.warning(
                "%s holds no checksum, so that changes by hand or by damage go unnoticed: "
                "calibrate again to have one",
                where,
            )
        return file

    def content(self) -> dict[str, Any]:
        """The file as plain JSON, with its checksum."""
        content = self.model_dump(mode="json", by_alias=True)
        fitted_on = content["fitted_on"]
        fitted_on.pop("checksum", None)
        first = {"card_version": self.fitted_on.card_version, "checksum": content_digest(content)}
        return content | {"fitted_on": first | fitted_on}

    def text(self) -> str:
        """The file's text."""
        content = json.dumps(self.content(), indent=1, ensure_ascii=False, allow_nan=False)
        return f"{content}\n"

    def write(self, path: str | Path) -> None:
        """Write the file, completely or not at all."""
        write_text(self.text(), path)

    def recommended(self, with_entropies: bool = True) -> str:
        """The estimator that the file recommends, or where it names none the default fit or TRACE+.

        Where the file lacks it, or it needs entropies that the answers lack, it is the surprisal
        ridge, or the one of log-probabilities alone that predicted best where it was fitted.
        """
        *ranked, usual = (*self.fitted_on.ranking, DEFAULT_ESTIMATORS[-1])
        defaults = (name for name in DEFAULT_ESTIMATORS if name in self.estimators)
        first = self.fitted_on.estimator or next(defaults, usual)
        inputs = {name: INPUTS[name] for name in INPUTS if name in self.estimators}
        if LOG_RIDGE_ALSO.id in inputs:
            features = self.estimators[LOG_RIDGE_ALSO.id].features
            inputs[LOG_RIDGE_ALSO.id] = [f"features.{name}" for name in features]
        if with_entropies and first in self.estimators:
            return first
        for name in (first, WITHOUT_ENTROPIES, *ranked, *FALLBACKS):
            if name in inputs and ENTROPY_INPUTS.isdisjoint(inputs[name]):
                return name
        return usual

    def guaranteeing(self, estimator: str) -> CalibratedEstimator | None:
        """Return the estimator whose guarantees cover the answers that `estimator` scores, or None.

        It is the estimator itself, or the recommended one for a substitute of answers without
        entropies and for the estimator that ranks.
        """
        if self.estimators[estimator].risk_control is not None:
            return self.estimators[estimator]
        recommended = self.estimators.get(self.recommended())
        if recommended is None or recommended.risk_control is None:
            return None
        substitute = self.recommended(with_entropies=False)
        shares = estimator in (substitute, recommended.risk_control.ranked_by)
        return recommended if shares else None


def content_digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of a file's content without its checksum, whatever its layout."""
    fitted_on = {k: v for k, v in content["fitted_on"].items() if k != "checksum"}
    canonical = json.dumps(
        {**content, "fitted_on": fitted_on},
        sort_keys=True,
        ensure_ascii=False,
        separators=(",", ":"),
    )
    return hashlib.sha256(canonical.encode()).hexdigest()


def _require_storable(value: Any, depth: int = 0) -> None:
    """Raise `ValueError` for a number that is too large, a text that UTF-8 cannot hold, and values
    that are nested too deep."""
    if depth > DEEPEST:
        raise ValueError("it is nested too deep")
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, int | float) and abs(value) >= LARGEST:
        raise ValueError("it holds a number beyond 9e18")
    elif isinstance(value, list | dict):
        for item in value:
            _require_storable(item, depth + 1)
        for item in value.values() if isinstance(value, dict) else ():
            _require_storable(item, depth + 1)


def _require_unchanged(content: Mapping[str, Any], where: str) -> None:
    """Raise `InputError` where a file's content does not match the checksum in it."""
    checksum = content["fitted_on"].get("checksum")
    if checksum is not None and checksum != content_digest(content):
        raise InputError(
            f"{where} does not match the checksum in it: it was changed or damaged. Calibrate "
            "again, or copy the file anew."
        )


def _describe(error: ValidationError, where: str) -> str:
    """The first error as a sentence, and how many more there are."""
    first, *further = error.errors()
    path = ".".join(str(step) for step in first["loc"])
    more = f", and {len(further)} further places are wrong" if further else ""
    return (
        f"{where} does not fit the schema of calibration cards: {path}: "
        f"{first['msg'].removeprefix('Value error, ')}{more}."
    )
