"""A calibrator's file: what it was fitted on, its fits, its thresholds of error rates."""

import hashlib
import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from pydantic import Field, PositiveInt

from tracecal.answers.own_columns import ALSO
from tracecal.answers.parts.parts import Parts
from tracecal.answers.raw_answer import Known, Reasoning, StopToken
from tracecal.answers.reading import Reading
from tracecal.answers.record import ENTROPY_KIND
from tracecal.calibration.few_labels import PART_FEATURE
from tracecal.calibration.fits import Fit, Logistic, Mixture, Pooled, from_json
from tracecal.errors import InputError
from tracecal.estimators.registry import LOG_RIDGE_ALSO, OF_FILES
from tracecal.estimators.trace_inputs import ENTROPY_INPUTS, NO_CUSTOM, Custom, need_entropy
from tracecal.io.checksums import read_sum
from tracecal.io.digests import digest
from tracecal.io.ownership import checksum_path
from tracecal.io.settings import Strict, parse

# Increase it whenever a feature's definition changes, so that older calibrators are refused.
FEATURE_VERSION = 1
# Of the file's form: `card.schema.json` describes it. Files without one are of this form, too.
CARD_VERSION = 1


class FurtherColumn(Strict):
    """A column of the user's own, a number or a verdict, larger: more trustworthy."""

    name: str
    path: str = Field(description="where it is in a row")


Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class FittedOn(Strict):
    """The answers that a calibrator was fitted on."""

    card_version: Literal[1] = Field(CARD_VERSION, description="of this file's form")
    model: str | None = Field(None, description="its name; null: not known")
    known_as: tuple[str, ...] = Field((), description="other names of the same model")
    revision: str | None = None
    task: str
    stop_token: StopToken = "included"
    processed: Known = "no"
    reasoning: Reasoning = "none"
    entropy: Literal["exact", "top-k", "none"] = "exact"
    top_k: PositiveInt | None = Field(None, description="log-probabilities listed per token")
    vocabulary: PositiveInt | None = Field(None, description="the model's number of tokens")
    feature_version: int = FEATURE_VERSION
    n: int = Field(ge=1, description="labelled answers")
    groups: PositiveInt | None = Field(None, description="their questions; null: not known")
    base_rate: float = Field(ge=0, le=1, description="the share of correct answers")
    ranking: tuple[str, ...] = Field((), description="estimators, smallest Brier score first")
    estimator: str | None = Field(None, description="the one to use; null: TRACE+")
    gain: tuple[float, float, float] | None = Field(
        None,
        description="by how much its Brier score is below that of the default, and the ends of the "
        "interval; null where it is the default, or where that could not be used",
    )
    answers: tuple[str, ...] = Field((), repr=False, description="fingerprints of the answers")
    dates: tuple[Day, Day] | None = Field(
        None, description="the first and the last day (UTC) of these answers; null: not known"
    )
    parts: Parts | None = Field(None, description="which parts of answers; null: whole answers")
    also: tuple[FurtherColumn, ...] = Field((), description="taken beside the trace")
    not_for: tuple[str, ...] = Field((), repr=False, description="`unfit_for`, for readers")

    @property
    def columns(self) -> dict[str, str]:
        """The paths of the further columns, by name."""
        return {one.name: one.path for one in self.also}

    def stored(self) -> dict[str, object]:
        """As plain JSON."""
        usual = {"estimator": None, "gain": None, "parts": None, "reasoning": "none"}
        usual |= {"groups": None, "also": (), "dates": None}
        left_out = {name for name, value in usual.items() if getattr(self, name) == value}
        told = self.model_copy(update={"not_for": unfit_for(self)})
        return told.model_dump(mode="json", by_alias=True, exclude=left_out)


def unfit_for(fitted_on: FittedOn) -> tuple[str, ...]:
    """What a calibrator must not be used for, a sentence each."""
    whole = fitted_on.parts is None
    model = fitted_on.model or "the model that gave the labelled answers"
    revision = f", revision {fitted_on.revision}" if fitted_on.revision else ""
    return (
        f"Answers of another model, revision or quantisation than {model}{revision}.",
        f"Answers to another task than {fitted_on.task}, or to its questions drawn in another way.",
        "Answers to changed prompts, or decoded with other settings.",
        f"Other kinds of traces than these: {', '.join(kinds_of(fitted_on))}.",
        *(
            f"Answers whose {name} was made in another way than that of the labelled answers."
            for name in fitted_on.columns
        ),
        "Parts of answers: it is of whole ones."
        if whole
        else "Whole answers, and other parts than those it names.",
        "Saying of a single answer that it is right: a guarantee is about the share of all kept.",
    )


def kinds_of(fitted_on: FittedOn) -> list[str]:
    """The kind of the traces, in words."""
    stop = {"included": "with the stop token", "absent": "without the stop token"}
    raw = {"no": "raw probabilities", "yes": "probabilities after temperature or penalties"}
    thought = {
        "none": "no reasoning before the answer",
        "apart": "without the reasoning before the answer",
        "within": "with the reasoning before the answer",
        "alone": "of the reasoning before the answer alone",
    }
    entropies = {
        "exact": "exact entropies",
        "top-k": f"entropies from the {fitted_on.top_k or 'few'} likeliest tokens",
        "none": "no entropies",
    }
    return [
        stop.get(fitted_on.stop_token, "not known whether with the stop token"),
        raw.get(fitted_on.processed, "not known whether probabilities are raw"),
        thought[fitted_on.reasoning],
        entropies[fitted_on.entropy],
    ]


def fitted_on(
    metadata: Mapping[str, str],
    correct: pl.Series,
    model: str,
    known_as: Sequence[str],
    task: str,
) -> dict[str, object]:
    """`FittedOn` as plain JSON, from a traces file's `metadata` and the labels of its answers.

    Its defaults describe traces decoded here: raw, exact, with the token that ends an answer.
    """
    names = {*known_as, *filter(None, metadata.get("known_as", "").split("\n"))} - {model}
    keys = ("revision", "stop_token", "processed", "reasoning", "entropy", "top_k", "vocabulary")
    return FittedOn(
        model=model,
        known_as=tuple(sorted(names)),
        task=task,
        n=len(correct),
        base_rate=float(correct.mean()),
        parts=Parts.model_validate_json(metadata["parts"]) if "parts" in metadata else None,
        **{name: metadata[name] for name in keys if name in metadata},
    ).stored()


# What `calibrate` recommends unless another is shown to be better; fixed before labels are seen.
DEFAULT = "log_ridge"


def default_of(estimators: Container[str]) -> str:
    """DEFAULT; where columns of a user's own are given, that with them, which is then there."""
    return LOG_RIDGE_ALSO.id if LOG_RIDGE_ALSO.id in estimators else DEFAULT


# For calibrators that do not say which one to use: the workflow's and older ones.
UNNAMED, FALLBACK = "trace_plus", ("seq_logp", "len_norm_logp")


class _Labels(dict[str, str]):
    """By id; one of a user's own estimators is called by it."""

    def __missing__(self, name: str) -> str:
        return name


LABELS = _Labels({entry.id: entry.label for entry in OF_FILES})
# What answers are kept by: an error rate, or a guarantee of a cascade, such as 'below:0.02'.
Target = float | str


def target_of(error_rate: float | None, promise: str | None) -> Target | None:
    """By which of two options answers are kept; null: by none. Raises `InputError` for both."""
    if promise is not None and error_rate is not None:
        raise InputError("give --error-rate or --promise: answers are kept by one of them.")
    return error_rate if promise is None else promise


@dataclass(frozen=True)
class Reference:
    """Values of answers like those of the calibration, which the fit has not seen."""

    probability: Sequence[float] = field(default_factory=tuple)
    length: Sequence[float] = field(default_factory=tuple)


@dataclass(frozen=True)
class Fitted:
    """One estimator's calibrator.

    `inputs` are its columns, in the order of the fits. `final` is fitted on all labelled answers
    and gives the probability. `thresholds` (by target, null where none has the guarantee) hold for
    the probabilities of `tested_fit`, the fit that left answers to test on; `reasons` say why one
    is null. Guarantees of a cascade are about the model `large`. Where the fits are `by_part`,
    their last input, after `inputs`, is which part of an answer it is (see
    `calibration.few_labels`). `reference` are values of answers that `tested_fit` has not seen.
    `custom` defines those inputs that are estimators of a user's own. `held_out` are probabilities
    of the labelled answers, by their `fingerprints`, of fits that had not seen them.

    >>> fitted = getfixture("calibrator")  # load("C.json")
    >>> fitted.estimator, sorted(fitted.thresholds)
    ('trace_plus', [0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
    """

    estimator: str
    inputs: tuple[str, ...]
    final: Fit
    tested_fit: Fit | None
    thresholds: Mapping[Target, float | None]
    reasons: Mapping[Target, str]
    fitted_on: FittedOn
    large: str | None = None
    by_part: bool = False
    reference: Reference = field(default_factory=Reference)
    custom: Custom = field(default_factory=dict)
    held_out: Mapping[str, float] = field(default_factory=dict, repr=False)

    @property
    def also(self) -> list[str]:
        """Those of the inputs that are columns of the user's own, by their names."""
        return [name.removeprefix(ALSO) for name in self.inputs if name.startswith(ALSO)]

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

        Null where no threshold guarantees it, see `why_not`. Raises `InputError` where
        the calibrator was not tested for it.
        """
        self.require_tested(target)
        threshold = self.thresholds[target]
        if threshold is None or self.tested_fit is None:
            return None
        return self.tested_fit.predict(x) >= threshold

    def why_not(self, target: Target) -> str | None:
        """Why no threshold guarantees a tested target; null where one does."""
        self.require_tested(target)
        return self.reasons.get(target)

    def require_tested(self, target: Target) -> None:
        """Raise `InputError` where the calibrator was not tested for a target."""
        if target in self.thresholds:
            return
        promises = [one for one in self.thresholds if isinstance(one, str)]
        if isinstance(target, str):
            raise InputError(
                f"the calibrator of {self.estimator} has no guarantee {target!r}; it has: "
                f"{', '.join(promises) or 'none'}. Choose one of these, or make a calibrator with "
                "'tracecal cascade --output'."
            )
        tested = ", ".join(f"{one:g}" for one in self.thresholds if one not in promises) or "none"
        raise InputError(
            f"the calibrator of {self.estimator} was not tested for an error rate of {target:g}; "
            f"tested: {tested}. Choose one of these, or calibrate for it."
        )


def interval(calibrator: Fit, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
    weights, _ = calibrator.coefficients(x[:, -1])
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
    told = stored["fitted_on"]
    if isinstance(told, dict) and told.get("card_version", CARD_VERSION) != CARD_VERSION:
        raise InputError(
            f"{path} is a calibration card of version {told['card_version']}, and this tracecal "
            f"reads version {CARD_VERSION}: use the tracecal that made it, or calibrate again."
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
            f"{path} does not match its checksum in {checksum_path(path)}: it was changed or "
            "damaged. Calibrate again, or copy both files anew."
        )


def default_estimator(stored: Mapping[str, Any], entropies: bool = True) -> str:
    """The estimator that the file recommends, or TRACE+ where it names none.

    Where that is not in the file, or needs `entropies` that the answers lack, it is the one of
    log-probabilities alone that predicted best where it was fitted.
    """
    fitted_on = stored["fitted_on"]
    usual, *others = (fitted_on.get("estimator") or UNNAMED, *fitted_on.get("ranking", ()))
    inputs = {entry.id: entry.inputs for entry in OF_FILES if entry.id in stored}
    if LOG_RIDGE_ALSO.id in inputs:
        features = stored[LOG_RIDGE_ALSO.id]["features"]
        inputs[LOG_RIDGE_ALSO.id] = [f"features.{name}" for name in features]
    if entropies and usual in inputs:
        return usual
    for name in (usual, *others, *FALLBACK):
        if name in inputs and ENTROPY_INPUTS.isdisjoint(inputs[name]):
            return name
    return UNNAMED


def from_stored(
    stored: Mapping[str, Any], estimator: str | None, where: str, custom: Custom = NO_CUSTOM
) -> Fitted:
    """As `load`, from a file's content. `custom` defines estimators that are not built in."""
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
        inputs=tuple(_inputs(estimator, features, fits, custom, fitted_on.columns)),
        final=from_json(fits["final"]),
        tested_fit=from_json(tested) if tested else None,
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
        custom={name: score for name, score in custom.items() if name == estimator},
        held_out=_held_out(fits.get("held_out", {})),
    )


def _held_out(stored: Mapping[str, Any]) -> dict[str, float]:
    """By fingerprint; empty of a file of an earlier version, which does not name the answers."""
    pairs = zip(stored.get("answer", ()), stored.get("probability", ()), strict=False)
    return {answer: probability for answer, probability in pairs if answer is not None}


def _reason(entry: Mapping[str, Any], control: Mapping[str, Any]) -> str:
    """Why there is no threshold for an error rate, from its entry of `risk_control`."""
    about = f"about {entry['enough']:,}" if entry.get("enough") else "far more"
    return (
        f"no threshold guarantees an error rate of {entry['error_rate']:g} with "
        f"confidence {control['confidence']:g}: {control['groups']} questions were tested, and "
        f"{about} would be needed"
    )


def _inputs(
    estimator: str,
    features: list[str],
    fits: Mapping[str, Any],
    custom: Custom,
    also: Iterable[str],
) -> list[str]:
    """An estimator's inputs with their folders, which a calibrator's file leaves out."""
    if (definition := fits.get("definition")) is not None:
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
    known = {entry.id: entry.inputs for entry in OF_FILES}
    known[LOG_RIDGE_ALSO.id] = also_inputs(
        [name for name in known[DEFAULT] if name.split(".", 1)[1] in features], also
    )
    if [name.split(".", 1)[1] for name in known.get(estimator, ())] != features:
        raise InputError(
            f"the calibrator of {estimator!r} needs {', '.join(features)}, which are not this "
            "estimator's inputs in this version; calibrate it again."
        )
    return known[estimator]


def resting_on(also: Iterable[str]) -> str:
    """What probabilities and guarantees rest on where there are columns of the user's own."""
    *others, last = also
    return f"{', '.join(['the trace', *others])} and {last}, made as for the labelled answers"


def also_inputs(of_trace: Iterable[str], also: Iterable[str]) -> list[str]:
    """The inputs of the fit with columns of the user's own: those `of_trace`, then the columns."""
    return [*of_trace, *(f"{ALSO}{name}" for name in also)]


# Whether answers match the model, task and kind of trace that a calibrator was fitted on.


QUESTIONS = {
    "stop_token": {
        "included": "include the stop token",
        "absent": "leave out the stop token",
        "what": "whether traces include the stop token",
        "option": "--stop-token",
    },
    "processed": {
        "yes": "hold probabilities changed by temperature, penalties or truncation",
        "no": "hold the model's raw probabilities",
        "what": "whether probabilities are the model's raw ones",
        "option": "--processed",
    },
    "reasoning": {
        "none": "are of answers without reasoning before them",
        "apart": "leave out the reasoning tokens that precede an answer",
        "within": "include the reasoning tokens that precede an answer",
        "alone": "are of the reasoning tokens that precede an answer",
        "what": "whether traces include reasoning",
        "option": "--reasoning",
    },
}
OPEN = {"reasoning": ()} | dict.fromkeys(("stop_token", "processed"), ("unknown", "none"))
# Servers may list the chosen token besides the k likeliest.
TOP_K_MARGIN = 1
# The beginning of another question in an answer's text.
NEXT_QUESTION = r"\n[^\S\n]*(?:Q|Question|Problem|Input|User|Human)\s*(?:\d+\s*)?:"
KNOWN_ANSWER = "the calibrator was fitted on this very answer: its probability is not out-of-sample"


def require_same_kind(answers: pl.DataFrame, fitted_on: FittedOn, task: str | None = None) -> None:
    """Raise `InputError` where answers are of another model, task or kind of trace.

    Unknown properties of either side count as equal; see `open_questions`.
    """
    if task is not None and task != fitted_on.task:
        raise InputError(
            f"the calibrator was fitted on the task {fitted_on.task!r}, but the answers are of "
            f"{task!r}: calibrate on answers to that task. If both names mean the same task, add "
            f"--task {fitted_on.task}."
        )
    _require_model(answers["model"].drop_nulls().unique().sort().to_list(), fitted_on)
    traced = answers.filter(pl.col("surprisal").is_not_null())
    for column, words in QUESTIONS.items():
        fitted = getattr(fitted_on, column)
        others = traced.filter(~pl.col(column).is_in([fitted, *OPEN[column]]))
        if fitted not in OPEN[column] and others.height:
            raise InputError(
                f"the calibrator was fitted on traces that {words[fitted]}, but {others.height} "
                f"answer(s), such as {others['example_id'][0]!r}, {words[others[column][0]]}: its "
                "probabilities do not hold for them. Calibrate on answers like these, or correct "
                f"their kind with {words['option']}."
            )


def vocabulary_for(fitted_on: FittedOn, given: int | None) -> int | None:
    """The vocabulary's size for answers to be scored. Raises `InputError` for another size than
    the calibrator's.
    """
    if given is not None and fitted_on.vocabulary not in (None, given):
        raise InputError(
            f"the calibrator was fitted with a vocabulary of {fitted_on.vocabulary} tokens, not "
            f"{given}; leave out --vocabulary, or calibrate with {given}."
        )
    return given or fitted_on.vocabulary


def reading_for(fitted_on: FittedOn, reading: Reading) -> Reading:
    """How answers to be scored are read: `reading` with the vocabulary and the further columns of
    the fit. Raises `InputError` where they are others.
    """
    known = fitted_on.columns
    also = known | reading.also
    if more := [name for name in also if name not in known]:
        raise InputError(
            f"the calibrator was not fitted on the further column {more[0]!r}; it has: "
            f"{', '.join(known) or 'none'}. "
            "Leave it out, or calibrate with it (--also)."
        )
    vocabulary = vocabulary_for(fitted_on, reading.vocabulary)
    return reading.model_copy(update={"vocabulary": vocabulary, "also": also})


def other_entropies(kind: str, top_k: int | None, fitted_on: FittedOn) -> str | None:
    """Why a threshold does not hold for entropies of this kind; null where it does.

    `kind` is 'exact' or 'top-k', then of `top_k` listed tokens; null: not known.
    """
    if kind == fitted_on.entropy and (
        top_k is None or fitted_on.top_k is None or abs(top_k - fitted_on.top_k) <= TOP_K_MARGIN
    ):
        return None
    fitted, found = _entropies(fitted_on.entropy, fitted_on.top_k), _entropies(kind, top_k)
    return (
        f"the threshold was tested on answers with {fitted}, and this one has {found}: calibrate "
        "on answers like it"
    )


def _entropies(kind: str, top_k: int | None) -> str:
    listed = f"the {top_k} likeliest tokens" if top_k else "the likeliest tokens"
    return {"exact": "exact entropies", "top-k": f"entropies from {listed}"}.get(
        kind, "no entropies"
    )


def undecided(
    answers: pl.DataFrame, inputs: Iterable[str], fitted_on: FittedOn
) -> list[str | None]:
    """Why a threshold on these inputs does not hold for each answer's entropies; null where it
    does.
    """
    if not need_entropy(inputs):
        return [None] * answers.height
    kinds = answers.select(ENTROPY_KIND, "top_k").rows()
    return [other_entropies(*kind, fitted_on) for kind in kinds]


def other_kinds(answers: pl.DataFrame, fitted_on: FittedOn) -> str | None:
    """How many of the labelled `answers` have entropies that no threshold decides about; null where
    none has.
    """
    known = answers.filter(pl.col("entropy").is_not_null()).select("top_k", kind=ENTROPY_KIND)
    of_kind = known.group_by("kind", "top_k").len().sort("kind", "top_k").rows()
    without = sum(
        count for *kind, count in of_kind if other_entropies(*kind, fitted_on) is not None
    )
    if not without:
        return None
    counts = ", ".join(f"{_entropies(*kind)} ({count} answers)" for *kind, count in of_kind)
    margin = f", give or take {TOP_K_MARGIN}" if fitted_on.top_k else ""
    return (
        f"the labelled answers have entropies of several kinds: {counts}. Thresholds on entropies "
        f"hold for {_entropies(fitted_on.entropy, fitted_on.top_k)}{margin}: the {without} other "
        "labels enter the fits, and not the tests of thresholds"
    )


def fingerprints(answers: pl.DataFrame) -> pl.Series:
    """A short digest of each answer's question and trace; null without a trace."""
    columns = ("example_id", "prompt", "surprisal")
    return pl.Series(
        [
            None if surprisal is None else _digest(prompt or example_id, surprisal)
            for example_id, prompt, surprisal in answers.select(columns).iter_rows()
        ],
        dtype=pl.String,
    )


def _digest(question: str, surprisal: list[float]) -> str:
    trace = np.asarray(surprisal, dtype=np.float32).tobytes()
    return hashlib.blake2b(question.encode() + b"\0" + trace, digest_size=6).hexdigest()


def open_questions(answers: pl.DataFrame, fitted_on: FittedOn) -> list[str]:
    """What is unknown of the calibrator or the answers, one sentence each."""
    traced = answers.filter(pl.col("surprisal").is_not_null())
    unknown = [
        f"it is not known of the {whose} {words['what']} ({words['option']})"
        for column, words in QUESTIONS.items()
        for whose, kinds in (
            ("calibrator", [getattr(fitted_on, column)]),
            ("answers", traced[column].to_list()),
        )
        if "unknown" in kinds
    ]
    if fitted_on.model is None or traced["model"].null_count():
        whose = "answers" if fitted_on.model else "calibrator"
        unknown.append(f"it is not known of the {whose} which model they are by (--model)")
    return unknown


def run_on(answers: pl.DataFrame) -> str | None:
    """A warning where answers' texts run on into another question; null where none does."""
    going_on = answers.filter(pl.col("answer").str.contains(NEXT_QUESTION))
    if not going_on.height:
        return None
    return (
        f"{going_on.height} of {answers.height} answers, such as {going_on['example_id'][0]!r}, "
        "run on into another question, whose tokens count as theirs: decode with a stop string, "
        "or cut texts and traces there"
    )


def spellings(model: str) -> set[str]:
    """A model's name, and that without its owner, in small letters."""
    return {model.lower(), model.lower().rsplit("/", 1)[-1]}


def _require_model(models: list[str], fitted_on: FittedOn) -> None:
    if fitted_on.model is None or not models:
        return
    names = {name.lower() for name in (fitted_on.model, *fitted_on.known_as)}
    for model in models:
        if not names & spellings(model):
            raise InputError(
                f"the calibrator was fitted on answers of {fitted_on.model!r}, but some answers "
                f"are by {model!r}: calibrate on that model's answers. If both names mean the "
                f"same model, add --model {fitted_on.model}."
            )
