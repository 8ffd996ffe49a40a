"""A calibrated probability for each answer of a file, or for one answer of a server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from tracecal.answers.own_columns import ALSO
from tracecal.answers.reading import Reading
from tracecal.answers.record import Record, as_frame
from tracecal.answers.row import read_row
from tracecal.calibrator.schema import (
    KNOWN_ANSWER,
    Fitted,
    Target,
    fingerprints,
    interval,
    open_questions,
    other_entropies,
    reading_for,
    require_same_kind,
    run_on,
    undecided,
)
from tracecal.errors import InputError
from tracecal.estimators.trace_inputs import (
    ENTROPY_INPUTS,
    SLOPES,
    TRACE_INPUTS,
    UNBOUNDED,
    compute_inputs,
    input_bounds,
)
from tracecal.features.features import SINGLE_FEATURES, single_features
from tracecal.io.log import LOGGER

SCORED = {
    "example_id": pl.String,
    "probability": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "keep": pl.Boolean,
    "reason": pl.String,
}
WITHOUT = "it has no {}, which the calibrator takes beside the trace (--also)"
PROBABILITIES = ("probability", "lower", "upper")


def score_answers(
    answers: pl.DataFrame,
    fitted: Fitted,
    error_rate: Target | None = None,
    task: str | None = None,
) -> pl.DataFrame:
    """The columns of `SCORED`, a row per answer of `answers` (columns of `RECORDS`), in its order.

    Where the calibrator is one of parts of answers, `answers` are such, with the column `part`.
    `probability` lies in [`lower`, `upper`], as would that of exact entropies. `reason` says why
    `probability`, or `keep` at a target (`error_rate`, or a guarantee of a cascade), is null.
    Raises `InputError` where the answers are not of the calibrator's model, task and kind of trace,
    or where it needs more than traces.
    """
    fitted.require_parts("part" in answers.columns)
    require_same_kind(answers, fitted.fitted_on, task)
    for warning in (*open_questions(answers, fitted.fitted_on), run_on(answers)):
        if warning:
            LOGGER.warning("%s", warning)
    columns = list(fitted.inputs)
    own = {f"scores.{name}" for name in fitted.custom} | {f"{ALSO}{name}" for name in fitted.also}
    if missing := [name for name in columns if name not in TRACE_INPUTS and name not in own]:
        raise InputError(
            f"{fitted.estimator} needs {missing[0]}, which traces do not provide: only the "
            "workflow can compute it. Choose trace_plus or another estimator of traces."
        )
    known = compute_inputs(answers, columns, fitted.custom)
    defined = known.select(pl.all_horizontal(pl.col(columns).is_not_null())).to_series()
    x, low, high = (
        fitted.with_part(
            frame.filter(defined).select(columns).to_numpy(order="c"),  # NaN where null
            answers.filter(defined)["part"] if fitted.by_part else (),
        )
        for frame in (known, *input_bounds(answers, columns, fitted.custom))
    )
    lower, upper = interval(fitted.final, low, high)
    kept = fitted.keeps(x, error_rate) if error_rate is not None else None
    scored = pl.DataFrame(
        {
            "example_id": answers["example_id"].filter(defined),
            "probability": fitted.final.predict(x),
            "lower": lower,
            "upper": upper,
            "keep": kept,
        },
        schema_overrides=SCORED,
    )
    why = pl.when(~defined).then(_lacking(answers, known, fitted))
    if error_rate is not None:
        why = pl.coalesce(why, pl.Series(_undecided(answers, fitted, error_rate), dtype=pl.String))
    joined = answers.select("example_id", reason=why).join(
        scored.fill_nan(None), on="example_id", how="left", validate="1:1", maintain_order="left"
    )
    decided = pl.when(pl.col("reason").is_null()).then("keep")
    return joined.with_columns(keep=decided).select(*SCORED)


def _lacking(answers: pl.DataFrame, known: pl.DataFrame, fitted: Fitted) -> pl.Series:
    """What each of the answers that has no probability lacks for it, [answers]."""
    of_trace = [name for name in fitted.inputs if not name.startswith(ALSO)]
    reason = answers["lacks"].fill_null("undefined for this answer").alias("reason")
    of_column = pl.lit(None, pl.String)
    for name in fitted.also:
        missing = pl.when(pl.col(f"{ALSO}{name}").is_null()).then(pl.lit(WITHOUT.format(name)))
        of_column = pl.coalesce(of_column, missing)
    traced = pl.all_horizontal(pl.col(of_trace).is_not_null())
    told = pl.coalesce(pl.when(traced).then(of_column), "reason")
    return known.with_columns(reason).select(told).to_series()


def _undecided(answers: pl.DataFrame, fitted: Fitted, error_rate: Target) -> list[str | None]:
    """Why the threshold does not decide about each answer; null where it does."""
    if (why := fitted.why_not(error_rate)) is not None:
        return [why] * answers.height
    reasons = undecided(answers, fitted.inputs, fitted.fitted_on)
    among = fingerprints(answers).is_in(list(fitted.fitted_on.answers)).to_list()
    known = {True: KNOWN_ANSWER}
    return [reason or known.get(was) for reason, was in zip(reasons, among, strict=True)]


DIGITS = 4  # of probabilities in files


def with_digits(scored: pl.DataFrame) -> pl.DataFrame:
    """Scored answers, or answers with scored `parts`, with probabilities of as many digits as they
    are known to.
    """
    if "parts" not in scored.columns:
        return scored.with_columns(pl.col(pl.Float64).round(DIGITS))
    rounded = (pl.element().struct.field(name).round(DIGITS) for name in PROBABILITIES)
    return scored.with_columns(pl.col("parts").list.eval(pl.element().struct.with_fields(*rounded)))


def tell_missing(scored: pl.DataFrame, decided: bool) -> None:
    """Say how many answers have no probability, and where it is to be `decided` no decision."""
    whats = {"probability": "no probability"} | ({"keep": "no decision"} if decided else {})
    for column, what in whats.items():
        without = scored.filter(pl.col(column).is_null() & pl.col("reason").is_not_null())
        if without.height:
            reasons = "; ".join(without["reason"].unique().sort())
            counts = without.height, scored.height
            LOGGER.warning("%d of %d answers have %s: %s", *counts, what, reasons)


# The confidence of one answer, from two lists of floats or from a server's response.


NO_VALUES: Mapping[str, float | None] = {}
TRACE = {"surprisal": pl.List(pl.Float32), "entropy": pl.List(pl.Float32)}


@dataclass(frozen=True)
class Confidence:
    """The calibrated probability that an answer is correct.

    Exact entropies would give a probability between `lower` and `upper`; these are null where no
    bound is known. `keep` says whether the answer is kept at the target error rate; null where none
    was asked for, its threshold does not apply, or there is a `reason`, which says why that or
    `probability` is null, or what is unknown.
    """

    probability: float | None
    lower: float | None = None
    upper: float | None = None
    keep: bool | None = None
    reason: str | None = None


def score_answer(
    fitted: Fitted,
    surprisal: Sequence[float],
    entropy: Sequence[float] | None,
    error_rate: Target | None = None,
    lower: Sequence[float] | None = None,
    upper: Sequence[float] | None = None,
    top_k: int | None = None,
    part: str | None = None,
    also: Mapping[str, float | None] = NO_VALUES,
) -> Confidence:
    """The confidence of an answer whose tokens have these surprisals and entropies (nats), or of
    the `part` of this name, whose tokens they are. `also` are the values of a user's own columns.

    Bounds of the entropies, `lower` and `upper`, which came from `top_k` tokens a step, give the
    probability's own bounds. `entropy` may be null where the estimator does not need it. Raises
    `InputError` where the lists are empty, of unequal lengths, not finite or negative, or where
    the calibrator needs more than a trace.

    >>> fitted = getfixture("calibrator")  # load("C.json")
    >>> score_answer(fitted, surprisal=[0.05, 0.4], entropy=[0.2, 0.9]).probability > 0.5
    True
    """
    fitted.require_parts(part is not None)
    if entropy is None and not ENTROPY_INPUTS.isdisjoint(fitted.inputs):
        return Confidence(None, reason="its entropies are not known")
    if missing := [name for name in fitted.also if also.get(name) is None]:
        return Confidence(None, reason=WITHOUT.format(missing[0]))
    x = answer_inputs(fitted, surprisal, entropy, lower, upper, part, also)
    return confidence_of(fitted, x, error_rate, top_k)


def answer_inputs(
    fitted: Fitted,
    surprisal: Sequence[float],
    entropy: Sequence[float] | None,
    lower: Sequence[float] | None = None,
    upper: Sequence[float] | None = None,
    part: str | None = None,
    also: Mapping[str, float | None] = NO_VALUES,
) -> np.ndarray:
    """The calibrator's inputs of an answer, [1, d]; with bounds of the entropies [5, d], the others
    at `_extremes`. Arguments are those of `score_answer`, and errors of the lists.
    """
    if entropy is None:
        entropy, lower, upper = surprisal, None, None
    lists = [surprisal, entropy, *(bound for bound in (lower, upper) if bound is not None)]
    if len(set(map(len, lists))) > 1 or not len(surprisal):
        raise InputError("an answer must have one surprisal and one entropy per token, at least 1")
    # Rounded as traces are stored, so that an answer has one confidence everywhere.
    arrays = np.array(lists, dtype=np.float32).astype(float)
    if not (np.isfinite(arrays).all() and (arrays >= 0).all()):
        raise InputError("surprisals and entropies must be finite and not negative, in nats")
    s, h, *bounds = arrays
    extremes = _extremes(*bounds) if len(bounds) == 2 else []
    own = np.array([also[name] for name in fitted.also], dtype=float)
    of_trace = _inputs(fitted, s, np.stack([h, *extremes]))
    x = np.hstack([of_trace, np.tile(own, (len(of_trace), 1))])
    return fitted.with_part(x, [part or ""] * len(x))


def confidence_of(
    fitted: Fitted, x: np.ndarray, error_rate: Target | None = None, top_k: int | None = None
) -> Confidence:
    """The confidence of an answer by its inputs x, as `answer_inputs` gives them."""
    bounded, needs_entropy = len(x) > 1, not ENTROPY_INPUTS.isdisjoint(fitted.inputs)
    probability = float(fitted.final.predict(x[:1])[0])
    least: float | None = probability
    most: float | None = probability
    if bounded and needs_entropy:
        least, most = _ends(fitted, x[1:])
    if error_rate is None:
        return Confidence(probability, least, most)
    kept, reason = fitted.keeps(x[:1], error_rate), fitted.why_not(error_rate)
    if kept is not None and needs_entropy:
        reason = other_entropies("top-k" if bounded else "exact", top_k, fitted.fitted_on)
    keep = None if kept is None or reason else bool(kept[0])
    return Confidence(probability, least, most, keep, reason)


def score_response(
    fitted: Fitted,
    response: Any,
    request: Mapping[str, Any] | None = None,
    error_rate: Target | None = None,
    reading: Reading | None = None,
) -> Confidence:
    """The confidence of an OpenAI client's response, or of a dict in a format that is read.

    The formats are those of docs/reference/formats.md.

    `request` holds the settings that were sent; without it they are unknown. Raises `InputError`
    where the response is of another model or kind of trace, and `WrongRow` where it is invalid.

    >>> fitted = getfixture("calibrator")  # load("C.json")
    >>> score_response(fitted, {"logprobs": [-0.05, -0.4], "entropy": [0.2, 0.9]}).probability > 0.5
    True
    """
    return score_record(
        fitted, read_response(fitted, response, request, reading or Reading()), error_rate
    )


def score_record(fitted: Fitted, record: Record, error_rate: Target | None = None) -> Confidence:
    """The confidence of an answer of the calibrator's kind (`require_same_kind`), as read.

    `keep` is None where something is unknown of the calibrator or the answer.
    """
    confidence = trace_confidence(fitted, record, error_rate)
    return doubted(confidence, open_questions(as_frame([record]), fitted.fitted_on))


def trace_confidence(
    fitted: Fitted, record: Record, error_rate: Target | None = None
) -> Confidence:
    """As `score_record`, where what is unknown is a warning alone, as for a file of answers."""
    needs_entropy = not ENTROPY_INPUTS.isdisjoint(fitted.inputs)
    if record.surprisal is None or (record.entropy is None and needs_entropy):
        return Confidence(None, reason=record.lacks)
    return score_answer(
        fitted,
        record.surprisal,
        record.entropy,
        error_rate,
        record.entropy_lower,
        record.entropy_upper,
        record.top_k,
        also=values_of(record),
    )


def values_of(record: Record) -> dict[str, float | None]:
    """The values of a user's own columns, by name."""
    return {one["name"]: one["value"] for one in record.also or ()}


def doubted(scored: Confidence, doubts: Sequence[str]) -> Confidence:
    """A confidence with what speaks against it: `keep` is null wherever there is a `reason`."""
    if not doubts:
        return scored
    return replace(scored, keep=None, reason="; ".join(filter(None, [scored.reason, *doubts])))


def read_response(
    fitted: Fitted, response: Any, request: Mapping[str, Any] | None, reading: Reading
) -> Record:
    """The answer that a response holds; raises as `score_response`."""
    body = response if isinstance(response, dict) else response.model_dump()
    row = {"id": "answer", "request": dict(request or {}), "response": body}
    record = read_row(row, reading_for(fitted.fitted_on, reading))
    require_same_kind(as_frame([record]), fitted.fitted_on)
    return record


def _inputs(fitted: Fitted, s: np.ndarray, entropies: np.ndarray) -> np.ndarray:
    """The inputs [n, d] of surprisals [T] with each of the entropies [n, T]; no own columns."""
    of_trace = [name for name in fitted.inputs if not name.startswith(ALSO)]
    if missing := [name for name in of_trace if name not in TRACE_INPUTS]:
        raise InputError(
            f"{fitted.estimator} needs {missing[0]}, which cannot be computed from one answer's "
            "two lists: only the workflow can compute it. Choose trace_plus, or another estimator "
            "of traces."
        )
    names = [name.removeprefix("features.") for name in of_trace]
    if SINGLE_FEATURES.issuperset(names):
        x = np.empty((len(entropies), len(names)))
        for place, values in enumerate(single_features(names, s, entropies)):
            x[:, place] = values
        return x
    rows = {
        "example_id": [str(place) for place in range(len(entropies))],
        "surprisal": [s.tolist()] * len(entropies),
        "entropy": entropies.tolist(),
    }
    return (
        compute_inputs(pl.DataFrame(rows, schema_overrides=TRACE), of_trace)
        .drop("example_id")
        .to_numpy()
    )


def _extremes(low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
    """The entropies [T] at which an input is smallest or largest; the slopes at the last two."""
    half = len(low) // 2
    falling = np.concatenate([high[:half], low[half:]])
    rising = np.concatenate([low[:half], high[half:]])
    return [low, high, falling, rising]


def _ends(fitted: Fitted, x: np.ndarray) -> tuple[float | None, float | None]:
    """The smallest and largest probability, from the inputs at `_extremes` [4, d]."""
    if UNBOUNDED.intersection(fitted.inputs):
        return None, None
    slopes = np.array([name in SLOPES for name in fitted.inputs] + [False] * fitted.by_part)
    ends = np.where(slopes, x[2:], x[:2])
    least, most = ends.min(axis=0, keepdims=True), ends.max(axis=0, keepdims=True)
    lowest, highest = interval(fitted.final, least, most)
    return float(lowest[0]), float(highest[0])
