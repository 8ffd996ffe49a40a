"""Confidence of the parts of answers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tracecal.answers.answers import require_threads
from tracecal.answers.parts.cutter import cut_parts
from tracecal.answers.parts.part_answers import NO_TOKENS, part_answers
from tracecal.answers.parts.parts import Parts
from tracecal.answers.reading import Reading
from tracecal.answers.record import RECORDS, TRACE, Record
from tracecal.calibrator.predictor import Predictor, Target
from tracecal.calibrator.scoring import Confidence, read_response, score_answers, score_record
from tracecal.calibrator.trace_kinds import require_parts

UNFITTED = "the calibrator was not fitted on this part: calibrate with --parts that name it"
SCORE = ("probability", "lower", "upper", "keep", "reason")
SHOWN = {"name": "name", "value": "value", "start": "first", "end": "last"}


def score_parts(
    answers: pl.DataFrame,
    predictor: Predictor,
    target: Target | None = None,
    task: str | None = None,
    parts: Parts | None = None,
) -> pl.DataFrame:
    """Score the parts of each answer: columns `example_id`, `parts` and `reason`.

    `parts` lists, in the order of the text, each part's `name`, `value`, characters [start, end) in
    the answer, and the `probability`, `lower`, `upper`, `keep` and `reason` of `score_answers`. The
    answer's `reason` says why there are no parts. The argument `parts` defaults to the calibrator's
    parts; other names get the common curve. Raises the errors of `score_answers`.
    """
    require_parts(predictor.fitted_on, True)
    rows, without = part_answers(answers, parts or predictor.fitted_on.parts)
    scores = score_answers(rows, predictor, target, task).select(SCORE)
    scored = rows.select("example_id", "parent_id", **SHOWN).hstack(scores)
    fields = pl.struct(*SHOWN, *SCORE).alias("parts")
    lists = scored.group_by("parent_id", maintain_order=True).agg(fields)
    joined = answers.select("example_id").join(
        lists, left_on="example_id", right_on="parent_id", how="left", maintain_order="left"
    )
    reasons = without.select("example_id", reason="why")
    return joined.join(reasons, on="example_id", how="left", maintain_order="left")


class ScoredPart(NamedTuple):
    """A part of an answer: name, value, characters [start, end) in the answer, and confidence."""

    name: str
    value: str
    start: int
    end: int
    confidence: Confidence


def _doubted(confidence: Confidence, doubts: Sequence[str]) -> Confidence:
    """Add doubts to a confidence's reason; with a reason `keep` is None."""
    if not doubts:
        return confidence
    reason = "; ".join(filter(None, [confidence.reason, *doubts]))
    return replace(confidence, keep=None, reason=reason)


class ScoredAnswer(NamedTuple):
    """An answer's confidence, its inputs if it has a probability, and its parts if any are named.

    `inputs` are `Predictor.answer_inputs`; None of an answer without entropies, too, where the
    predictor needs them.
    """

    confidence: Confidence
    inputs: np.ndarray | None
    parts: list[ScoredPart] | None


def score_with_parts(
    predictor: Predictor,
    record: Record,
    target: Target | None,
    requested: Sequence[str],
    doubts: Sequence[str],
) -> ScoredAnswer:
    """Score an answer, and the parts that the calibrator or the `requested` paths name.

    A calibrator of parts gives the answer itself no probability. The `doubts` are reasons not to
    keep the answer, nor any part.
    """
    is_whole, parts = predictor.fitted_on.parts is None, None
    if record.no_answer is not None:
        is_cut = requested or not is_whole
        return ScoredAnswer(*score_record(predictor, record, target), [] if is_cut else None)
    if requested or not is_whole:
        parts, reason = record_parts(predictor, record, target, requested)
        parts = [part._replace(confidence=_doubted(part.confidence, doubts)) for part in parts]
    if not is_whole:
        return ScoredAnswer(Confidence(None, reason=reason), None, parts)
    confidence, x = score_record(predictor, record, target)
    if x is None:
        return ScoredAnswer(confidence, None, None)
    is_usual = predictor.suited(record.entropy is not None) is predictor
    return ScoredAnswer(_doubted(confidence, doubts), x if is_usual else None, parts)


def record_parts(
    predictor: Predictor,
    record: Record,
    target: Target | None = None,
    requested: Sequence[str] = (),
) -> tuple[list[ScoredPart], str | None]:
    """Score the parts of one answer in the order of its text, or say why there are none.

    The parts are the calibrator's, and the JSON values at the `requested` paths, whose
    confidence is unknown. Raises the errors of `score_answer`.
    """
    fitted = predictor.fitted_on.parts
    further = [name for name in requested if fitted is None or name not in fitted.names]
    if not further:
        require_parts(predictor.fitted_on, True)
    require_threads()
    lists = {name: getattr(record, name) or (record.partial or {}).get(name) for name in TRACE}
    if lists["surprisal"] is None or record.tokens is None:
        return [], record.lacks or NO_TOKENS
    row = {"example_id": "a", "answer": record.answer or "", "tokens": list(record.tokens)}
    schema = {name: RECORDS[name] for name in row}
    kinds = [fitted] if fitted is not None else []
    kinds += [Parts(json=further)] if further else []
    frame = pl.DataFrame([row], schema=schema)
    cuts = [cut_parts(frame, kind) for kind in kinds]
    rows = pl.concat([rows for rows, _ in cuts]).sort("first", "last", maintain_order=True)
    if rows.is_empty():
        return [], cuts[0][1]["why"][0]
    scored_parts, n_parts = [], cuts[0][0].height
    for part in rows.iter_rows(named=True):
        location = part["name"], part["value"], part["first"], part["last"]
        if part["part"] in further:
            scored_parts.append(ScoredPart(*location, Confidence(None, reason=UNFITTED)))
            continue
        tokens = slice(part["start"], part["end"])
        trace = {
            name: None if values is None or None in values[tokens] else values[tokens]
            for name, values in lists.items()
        }
        cut = replace(record, answer=part["value"], **trace)
        confidence, _ = score_record(predictor, cut, target, part["part"], n_parts)
        scored_parts.append(ScoredPart(*location, confidence))
    return scored_parts, None


def score_response_parts(
    predictor: Predictor,
    response: Any,
    request: Mapping[str, Any] | None = None,
    target: Target | None = None,
    reading: Reading | None = None,
) -> dict[str, Confidence]:
    """Score each part of a response (see `score_response`), by names such as ``address.city``.

    For a pydantic model calibrate on the leaves of its schema: `--parts` takes the result of
    ``Model.model_json_schema()``. Raises the errors of `score_response`.
    """
    require_parts(predictor.fitted_on, True)
    record = read_response(predictor, response, request, reading)
    return {part.name: part.confidence for part in record_parts(predictor, record, target)[0]}
