"""What a calibrator says of answers: a probability for each, and whether to keep it.

`decide` says it of all answers alike, by their inputs and what is known beside them:
`score_answers` of those of a frame, `score_answer` of one from two lists of floats, and
`score_record` of one from a server's response.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tracecal.answers.reading import Reading
from tracecal.answers.record import ALSO, Record
from tracecal.answers.row import read_row
from tracecal.calibration.fits import probability_bounds
from tracecal.calibrator.catalogue import LABELS
from tracecal.calibrator.predictor import Predictor, Target
from tracecal.calibrator.trace_kinds import (
    compare_kinds,
    compare_record,
    other_decoding,
    other_entropies,
    reading_for,
    require_parts,
)
from tracecal.errors import InputError, WrongRow, require_threads
from tracecal.estimators.trace_inputs import (
    TRACE_INPUTS,
    bounded_inputs,
    compute_bounded_inputs,
)
from tracecal.features.features import ENTROPY_INPUTS, INPUTS
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
UNDEFINED = "undefined for this answer"
PROBABILITIES = ("probability", "lower", "upper")
DIGITS = 4  # of probabilities in files
NO_ENTROPIES = "its entropies are not known"
NO_VALUES: Mapping[str, float | None] = {}


def score_answers(
    answers: pl.DataFrame,
    predictor: Predictor,
    target: Target | None = None,
    task: str | None = None,
) -> pl.DataFrame:
    """Score each of the answers (columns of `RECORDS`); columns of `SCORED`, in the same order.

    For a calibrator of parts, `answers` are parts, with the column `part`. The probability, and the
    one that exact entropies would give, lie in [`lower`, `upper`]. `reason` says why `probability`,
    or `keep` at a target, is None. Raises `InputError` if the answers have another model, task or
    kind of trace than the calibrator, or if its inputs need more than traces. An answer that was
    not given is not kept at any target.
    """
    if target is not None:
        predictor.require_tested(target)
    deciding = None if target is None else predictor.ranking_inputs
    reasons = compare_kinds(answers, predictor.fitted_on, task, deciding)
    answers = answers.with_columns(undecided=pl.Series(reasons, dtype=pl.String))
    if predictor.substitute is None:
        return _score(answers, predictor, target)
    has_entropies = answers["entropy"].is_not_null()
    if answers.filter(~has_entropies)["surprisal"].count():
        names = LABELS[predictor.estimator], LABELS[predictor.substitute.estimator]
        LOGGER.warning("without entropies %s is not defined; using %s", *names)
    scored = pl.concat(
        _score(rows, predictor.suited(is_usual), target)
        for is_usual in (True, False)
        if (rows := answers.filter(has_entropies == is_usual)).height or is_usual
    )
    ids = answers.select("example_id")
    return ids.join(scored, on="example_id", how="left", maintain_order="left")


def _score(
    answers: pl.DataFrame, predictor: Predictor, target: Target | None = None
) -> pl.DataFrame:
    """Score answers, `undecided` by a threshold where they say why, by one predictor."""
    _require_trace_inputs(predictor)
    columns = list(predictor.columns)
    parts = answers["part"] if "part" in answers.columns else [""] * answers.height
    x = np.stack(
        [
            # Missing values become NaN.
            predictor.with_part(frame.select(columns).to_numpy(order="c"), parts)
            for frame in compute_bounded_inputs(answers, columns, predictor.custom)
        ]
    )
    kinds = Kinds(*answers.select(*Kinds._fields).get_columns())
    decided = pl.DataFrame(decide(predictor, x, kinds, target), schema_overrides=SCORED)
    return answers.select("example_id").hstack(decided.fill_nan(None)).select(*SCORED)


class Kinds(NamedTuple):
    """What is known of n answers beside their inputs; None where it speaks against nothing.

    Attributes
    ----------
    no_answer : sequence [n]
        Why the model gave no answer.
    lacks : sequence [n]
        What is missing in the trace.
    undecided : sequence [n]
        Why no threshold decides about the answer.
    """

    no_answer: Sequence[str | None]
    lacks: Sequence[str | None]
    undecided: Sequence[str | None]


def decide(
    predictor: Predictor, x: np.ndarray, kinds: Kinds, target: Target | None = None
) -> dict[str, Any]:
    """Say of n answers `probability`, its bounds, `keep` at a target and the `reason`, [n] each.

    x [3, n, d] has the predictor's columns (see `with_part`) and their lower and upper bounds, NaN
    where unknown. The `reason` says why there is no probability or, at a target, no decision. An
    answer that was not given is not kept.
    """
    inputs = predictor.select_inputs(x)
    complete = np.isfinite(inputs[0]).all(axis=1)
    proba = np.full(inputs.shape[:2], np.nan)
    proba[:, complete] = probability_bounds(predictor.final, inputs[:, complete])
    proba[:, [reason is not None for reason in kinds.no_answer]] = np.nan
    keep, why_not, score = None, None, np.zeros(len(complete))
    if target is not None:
        score, why_not = predictor.ranking_score(x[0]), predictor.why_not(target)
        keep = predictor.keeps(score, target)
    reasons = [
        no_answer
        or (None if has_inputs else _lacking(predictor, row, lacks))
        or (None if target is None else why_not or (None if has_score else lacks or UNDEFINED))
        or (None if target is None else undecided)
        for row, has_inputs, has_score, no_answer, lacks, undecided in zip(
            x[0], complete, ~np.isnan(score), *kinds, strict=True
        )
    ]
    if target is not None:
        keep = [
            False if no_answer else None if keep is None or reason else bool(keep[row])
            for row, (no_answer, reason) in enumerate(zip(kinds.no_answer, reasons, strict=True))
        ]
    return dict(zip(PROBABILITIES, proba, strict=True)) | {"keep": keep, "reason": reasons}


def _lacking(predictor: Predictor, row: np.ndarray, lacks: str | None) -> str:
    """Say what an answer with the columns `row` [d] lacks for a probability."""
    missing = [name for name, value in zip(predictor.columns, row, strict=False) if np.isnan(value)]
    missing = [name for name in missing if name in predictor.inputs]
    if missing and all(name.startswith(ALSO) for name in missing):
        return WITHOUT.format(missing[0].removeprefix(ALSO))
    return lacks or UNDEFINED


def _require_trace_inputs(predictor: Predictor) -> None:
    """Raise `InputError` where the predictor takes inputs that do not follow from traces."""
    own_inputs = {f"scores.{name}" for name in predictor.custom}
    own_inputs |= {f"{ALSO}{name}" for name in predictor.also}
    if missing := [
        name for name in predictor.columns if name not in TRACE_INPUTS and name not in own_inputs
    ]:
        raise InputError(
            f"{predictor.estimator} needs {missing[0]}, which traces do not provide: only the "
            "workflow can compute it. Choose trace_plus or another estimator of traces."
        )


def with_digits(scored: pl.DataFrame) -> pl.DataFrame:
    """Round the probabilities of scored answers or `parts` for a file."""
    if "parts" not in scored.columns:
        return scored.with_columns(pl.col(pl.Float64).round(DIGITS))
    rounded = (pl.element().struct.field(name).round(DIGITS) for name in PROBABILITIES)
    return scored.with_columns(pl.col("parts").list.eval(pl.element().struct.with_fields(*rounded)))


def warn_of_missing(scored: pl.DataFrame, decided: bool) -> None:
    """Warn how many answers have no probability and, if `decided`, no decision."""
    kinds = {"probability": "no probability"} | ({"keep": "no decision"} if decided else {})
    for column, kind in kinds.items():
        missing = scored.filter(pl.col(column).is_null() & pl.col("reason").is_not_null())
        if missing.height:
            reasons = "; ".join(missing["reason"].unique().sort())
            LOGGER.warning(
                "%d of %d answers have %s: %s", missing.height, scored.height, kind, reasons
            )


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
    predictor = predictor.suited(record.entropy is not None)
    bounds = record.entropy_lower, record.entropy_upper
    also = {column["name"]: column["value"] for column in record.also or ()}
    x = answer_inputs(predictor, record.surprisal, record.entropy, *bounds, part, also)
    undecided = None
    if not ENTROPY_INPUTS.isdisjoint(predictor.ranking_inputs):
        kind = "exact" if record.entropy_upper is None else "top-k"
        undecided = other_entropies(kind, record.top_k, predictor.fitted_on)
    kinds = Kinds([record.no_answer], [record.lacks], [undecided])
    *proba, keep, reason = decide(predictor, x[:, None], kinds, target).values()
    confidence = Confidence(
        *(None if np.isnan(value[0]) else value.item() for value in proba),
        keep=keep and keep[0],
        reason=reason[0],
    )
    return confidence, None if confidence.probability is None else x


def answer_inputs(
    predictor: Predictor,
    surprisal: Sequence[float] | None,
    entropy: Sequence[float] | None,
    lower: Sequence[float] | None = None,
    upper: Sequence[float] | None = None,
    part: str | None = None,
    also: Mapping[str, float | None] = NO_VALUES,
) -> np.ndarray:
    """Compute the predictor's columns of an answer, and their lower and upper bounds: [3, d].

    Columns that are unknown are NaN. Parameters and errors are those of `score_answer`.
    """
    if surprisal is None:
        return np.full((3, len(predictor.columns) + 1), np.nan)
    bounds = [] if lower is None or upper is None else [lower, upper]
    given = [surprisal, *([] if entropy is None else [entropy, *bounds])]
    if len(set(map(len, given))) > 1 or not len(surprisal):
        raise InputError("an answer must have one surprisal and one entropy per token, at least 1")
    # Rounded as traces are stored, so that an answer has one confidence everywhere.
    arrays = np.array(given, dtype=np.float32).astype(float)
    if not (np.isfinite(arrays).all() and (arrays >= 0).all()):
        raise InputError("surprisals and entropies must be finite and not negative, in nats")
    names = [name for name in predictor.columns if not name.startswith(ALSO)]
    if missing := [name for name in names if name not in INPUTS]:
        raise InputError(
            f"{predictor.estimator} needs {missing[0]}, which cannot be computed from one answer's "
            "two lists: only the workflow can compute it. Choose trace_plus, or another estimator "
            "of traces."
        )
    s, *entropies = arrays[:, None]
    x = bounded_inputs(names, s, *(entropies or [None]))[:, 0]
    if predictor.also:
        own = np.array([also.get(name) for name in predictor.also], dtype=float)
        x = np.hstack([x, np.tile(own, (len(x), 1))])
    return predictor.with_part(x, [part or ""] * len(x))


def score_record(predictor: Predictor, record: Record, target: Target | None = None) -> Confidence:
    """Score a record of the calibrator's kind (see `require_same_kind`).

    `keep` is None if a fact about the calibrator's traces or the answer is unknown.
    """
    confidence = trace_confidence(predictor, record, target)
    unknown = compare_record(record, predictor.fitted_on).unknown
    return confidence if record.no_answer else doubted(confidence, unknown)


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
