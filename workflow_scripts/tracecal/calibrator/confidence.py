"""Confidence of one answer, from two lists of floats or from a server's response."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tracecal.answers.reading import Reading
from tracecal.answers.record import ALSO, Record
from tracecal.answers.row import read_row
from tracecal.calibration.fits import probability_bounds
from tracecal.calibrator.predictor import Predictor, Target
from tracecal.calibrator.scoring import WITHOUT
from tracecal.calibrator.trace_kinds import (
    compare_record,
    other_decoding,
    other_entropies,
    reading_for,
    require_parts,
)
from tracecal.errors import InputError, WrongRow, require_threads
from tracecal.estimators.trace_inputs import (
    UNBOUNDED,
    bounded_inputs,
)
from tracecal.features.features import ENTROPY_INPUTS, INPUTS

NO_ENTROPIES = "its entropies are not known"
NO_VALUES: Mapping[str, float | None] = {}


@dataclass(frozen=True)
class Confidence:
    """The calibrated probability that an answer is correct.

    Attributes
    ----------
    probability : float or None
        Probability that the answer is correct.
    lower, upper : float or None
        Bounds of the probability that exact entropies would give; None if unknown.
    keep : bool or None
        Whether to keep the answer at the target; None without a target or with a `reason`, but
        False where the model gave no answer.
    reason : str or None
        Why `probability` or `keep` is None, what is unknown about the answer, or why there is none.
    """

    probability: float | None
    lower: float | None = None
    upper: float | None = None
    keep: bool | None = None
    reason: str | None = None


def score_answer(
    predictor: Predictor,
    surprisal: Sequence[float],
    entropy: Sequence[float] | None,
    target: Target | None = None,
    lower: Sequence[float] | None = None,
    upper: Sequence[float] | None = None,
    top_k: int | None = None,
    part: str | None = None,
    also: Mapping[str, float | None] = NO_VALUES,
) -> Confidence:
    """Score an answer by its tokens' surprisals and entropies (nats), or the `part` of this name.

    `also` holds the values of the user's own columns. The bounds `lower` and `upper` of entropies
    from `top_k` tokens per step give bounds of the probability. `entropy` may be None if the
    estimator does not need it. Raises `InputError` if a list is empty, lengths differ, a number is
    negative or not finite, or the calibrator needs more than a trace.

    >>> predictor = getfixture("calibrator")  # Calibrator.load("C.json").predictor("trace_plus")
    >>> score_answer(predictor, surprisal=[0.05, 0.4], entropy=[0.2, 0.9]).probability > 0.5
    True
    """
    require_parts(predictor.fitted_on, part is not None)
    if surprisal is None:
        raise InputError("an answer's surprisals are None; give one number per token, in nats")
    trace = {"surprisal": surprisal, "entropy": entropy}
    bounds = {"entropy_lower": lower, "entropy_upper": upper, "top_k": top_k}
    columns = [{"name": name, "value": value} for name, value in also.items()]
    record = Record("answer", **trace, **bounds, lacks=NO_ENTROPIES, also=columns)
    return confidence_and_inputs(predictor, record, target, part)[0]


def confidence_and_inputs(
    predictor: Predictor, record: Record, target: Target | None = None, part: str | None = None
) -> tuple[Confidence, np.ndarray | None]:
    """Score a record's trace, or the trace of the `part` of this name.

    The inputs are those of `answer_inputs`, of the predictor that suits the record; None if it has
    no probability. Raises the errors of `score_answer`.
    """
    if record.no_answer is not None:
        keep = None if target is None else False
        return Confidence(None, keep=keep, reason=record.no_answer), None
    predictor = predictor.suited(record.entropy is not None)
    needs_entropy = not ENTROPY_INPUTS.isdisjoint(predictor.inputs)
    if record.surprisal is None or (record.entropy is None and needs_entropy):
        return Confidence(None, reason=record.lacks), None
    also = {column["name"]: column["value"] for column in record.also or ()}
    if missing := [name for name in predictor.also if also.get(name) is None]:
        return Confidence(None, reason=WITHOUT.format(missing[0])), None
    bounds = record.entropy_lower, record.entropy_upper
    x = answer_inputs(predictor, record.surprisal, record.entropy, *bounds, part, also)
    kind = "top-k" if len(x) > 1 else "exact"
    other_kind = other_entropies(kind, record.top_k, predictor.fitted_on)
    return confidence_of(predictor, x, target, other_kind), x


def answer_inputs(
    predictor: Predictor,
    surprisal: Sequence[float],
    entropy: Sequence[float] | None,
    lower: Sequence[float] | None = None,
    upper: Sequence[float] | None = None,
    part: str | None = None,
    also: Mapping[str, float | None] = NO_VALUES,
) -> np.ndarray:
    """Compute the predictor's columns of an answer, and their lower and upper bounds: [3, d].

    Of exact entropies the bounds are the values: [1, d]. Columns that are unknown are NaN.
    Parameters and errors are those of `score_answer`.
    """
    bounds = [] if lower is None or upper is None else [lower, upper]
    given = [surprisal, *([] if entropy is None else [entropy, *bounds])]
    if len(set(map(len, given))) > 1 or not len(surprisal):
        raise InputError("an answer must have one surprisal and one entropy per token, at least 1")
    # Rounded as traces are stored, so that an answer has one confidence everywhere.
    arrays = np.array(given, dtype=np.float32).astype(float)
    if not (np.isfinite(arrays).all() and (arrays >= 0).all()):
        raise InputError("surprisals and entropies must be finite and not negative, in nats")
    names = trace_columns(predictor)
    if missing := [name for name in names if name not in INPUTS]:
        raise InputError(
            f"{predictor.estimator} needs {missing[0]}, which cannot be computed from one answer's "
            "two lists: only the workflow can compute it. Choose trace_plus, or another estimator "
            "of traces."
        )
    s, *entropies = arrays[:, None]
    x = bounded_inputs(names, s, *(entropies or [None]))[: max(1, len(entropies)), 0]
    if predictor.also:
        own = np.array([also[name] for name in predictor.also], dtype=float)
        x = np.hstack([x, np.tile(own, (len(x), 1))])
    return predictor.with_part(x, [part or ""] * len(x))


def confidence_of(
    predictor: Predictor,
    x: np.ndarray,
    target: Target | None = None,
    other_kind: str | None = None,
) -> Confidence:
    """Compute the confidence of an answer from its inputs x (see `answer_inputs`).

    `other_kind` says why thresholds on entropies do not hold for it (see `other_entropies`).
    """
    is_bounded = len(x) > 1 and not ENTROPY_INPUTS.isdisjoint(predictor.inputs)
    inputs = predictor.select_inputs(x if is_bounded else x[:1])[:, None]
    lower: float | None
    upper: float | None
    if is_bounded:
        probability, lower, upper = probability_bounds(predictor.final, inputs)[:, 0].tolist()
        if not UNBOUNDED.isdisjoint(predictor.inputs):
            lower = upper = None
    else:
        probability = lower = upper = predictor.final.predict(inputs[0]).item()
    if target is None:
        return Confidence(probability, lower, upper)
    decision, reason = predictor.keeps(x[:1], target), predictor.why_not(target)
    deciding = predictor.ranking_inputs
    if decision is not None and not ENTROPY_INPUTS.isdisjoint(deciding):
        unknown = np.isnan(x[0, [predictor.columns.index(name) for name in deciding]]).any()
        reason = NO_ENTROPIES if unknown else other_kind
    keep = None if decision is None or reason else bool(decision[0])
    return Confidence(probability, lower, upper, keep, reason)


def score_record(predictor: Predictor, record: Record, target: Target | None = None) -> Confidence:
    """Score a record of the calibrator's kind (see `require_same_kind`).

    `keep` is None if a fact about the calibrator's traces or the answer is unknown.
    """
    confidence, doubts = (
        trace_confidence(predictor, record, target),
        compare_record(record, predictor.fitted_on),
    )
    return confidence if record.no_answer else doubted(confidence, doubts.unknown)


def trace_confidence(
    predictor: Predictor, record: Record, target: Target | None = None
) -> Confidence:
    """Score a record as a file of answers: unknown facts do not change `keep`."""
    require_parts(predictor.fitted_on, False)
    confidence, x = confidence_and_inputs(predictor, record, target)
    doubt = None if x is None else other_decoding(record.decoding, predictor.fitted_on)
    return doubted(confidence, [doubt] if doubt else [])


def doubted(confidence: Confidence, doubts: Sequence[str]) -> Confidence:
    """Add doubts to a confidence's reason; with a reason `keep` is None."""
    if not doubts:
        return confidence
    reason = "; ".join(filter(None, [confidence.reason, *doubts]))
    return replace(confidence, keep=None, reason=reason)


def read_response(
    predictor: Predictor, response: Any, request: Mapping[str, Any] | None, reading: Reading
) -> Record:
    """Read the answer of a response; raises the errors of `Calibrator.score_response`."""
    require_threads()
    body = response if isinstance(response, dict) else response.model_dump()
    row = {"id": "answer", "request": dict(request or {}), "response": body}
    try:
        record = read_row(row, reading_for(predictor.fitted_on, reading))
    except WrongRow as error:
        raise InputError(f"the response cannot be read: {error}.") from error
    compare_record(record, predictor.fitted_on)
    return record


def trace_columns(predictor: Predictor) -> list[str]:
    """Return the predictor's columns that follow from the trace, in its order."""
    return [name for name in predictor.columns if not name.startswith(ALSO)]
