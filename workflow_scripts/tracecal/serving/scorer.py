"""The scorer: adds to a server's answers the probability that they are right, or why it is unknown.

1. `Scorer(predictor, reading, target)` takes a calibrator's predictor, and the target to keep
   answers at; `Unscored(reason)` serves requests that cannot be read.
2. `scored_body(content, request, endpoint, is_success)` is a body with confidence, and
   `add_confidence(answer, request)` sets it in each choice of a completion, or in an object of the
   Responses API itself.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from tracecal.answers.parts.parts import requested_parts
from tracecal.answers.raw_answer import OTHER_TEXT, is_spelled
from tracecal.answers.reading import Reading
from tracecal.answers.record import Record
from tracecal.answers.row import read_row
from tracecal.calibrator.part_confidences import ScoredPart, score_with_parts
from tracecal.calibrator.predictor import Predictor, Target, stated_target
from tracecal.calibrator.scoring import Confidence, require_kind
from tracecal.errors import InputError, WrongRow
from tracecal.io.log import LOGGER
from tracecal.serving.endpoints import (
    Endpoint,
    drop_confidence,
    may_need_changes,
    require_opaque,
    trim,
)
from tracecal.serving.json_bodies import Object, objects_in, parse_json, write_json

if TYPE_CHECKING:  # slow to load, and not needed at import
    from tracecal.serving.watcher import Inputs, Watcher


class Unscored:
    """Says of each answer that its confidence is unknown, and the `reason`."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def scored_body(
        self, content: bytes, request: Object, endpoint: Endpoint, is_success: bool
    ) -> bytes:
        """Return an answer's body with confidence and the requested log-probabilities alone; an
        error's body without any.

        Raises `UnreadableError` where the body is no JSON and might hold log-probabilities that
        the client did not request, or a confidence.
        """
        top = endpoint.client_top(request)
        try:
            answer = parse_json(content)
        except ValueError:
            answer = None
        if not isinstance(answer, dict | list):
            return require_opaque(content, top)
        is_answer = is_success and isinstance(answer, dict)
        if not (is_answer or may_need_changes(content)):
            return content
        drop_confidence(answer)
        if is_answer:
            self.add_confidence(answer, request)
        trim(answer, top)
        return write_json(answer)

    def add_confidence(self, answer: Object, request: Object, doubt: str | None = None) -> None:
        """Set `confidence` in every choice of an answer, or in the Responses object itself.

        With a `doubt`, a reason not to, no answer is kept.
        """
        if isinstance(answer.get("output"), list):
            answer["confidence"] = self.confidence(answer, request, doubt)
        for choice in objects_in(answer.get("choices")):
            one_choice = answer | {"choices": [choice]}
            choice["confidence"] = self.confidence(one_choice, request, doubt)

    def confidence(self, answer: Object, request: Object, doubt: str | None = None) -> Object:
        """Return the confidence of an answer with one choice, as JSON values."""
        return self.unknown(self.reason)

    def unknown(self, reason: str) -> Object:
        """Return the confidence of an answer that cannot be scored."""
        return vars(Confidence(None, reason=reason)) | {"error_rate": None}


@dataclass(frozen=True)
class Scorer(Unscored):
    """Scores each answer, and says whether to keep it at a target.

    The `target` is an error rate, or another one that the calibrator was tested for. Without it,
    `keep` is None; so it is wherever a `reason` is given. A `watcher` observes each answer, and
    withholds `keep` after an alarm. Raises `InputError` where the calibrator was not tested for the
    target, or takes columns that a server's answers lack.
    """

    predictor: Predictor
    reading: Reading
    target: Target | None = None
    watcher: "Watcher | None" = None

    def __post_init__(self) -> None:
        if also := self.predictor.also:
            raise InputError(
                f"the calibrator takes {' and '.join(also)} beside the trace (--also), and "
                "a server's answers have none: calibrate without --also for the proxy."
            )
        if self.target is not None:
            self.predictor.require_tested(self.target)

    def confidence(self, answer: Object, request: Object, doubt: str | None = None) -> Object:
        """Return the confidence of an answer with one choice, or the reason why it has none."""
        inputs: Inputs | None = None
        question = None
        try:
            confidence, inputs, question = self._score(answer, request, doubt)
        except (WrongRow, InputError, ValidationError) as error:
            confidence = self.unknown("; ".join(filter(None, [str(error), doubt])))
        except Exception as error:  # the client gets the answer, whatever the server wrote
            LOGGER.warning("an answer cannot be scored (%s)", type(error).__name__)
            reason = f"its log-probabilities cannot be read ({type(error).__name__})"
            confidence = self.unknown(reason)
        if self.watcher is None:
            return confidence
        return self.watcher.observe(answer, request, confidence, inputs, question)

    def unknown(self, reason: str) -> Object:
        """Return the confidence of an answer that cannot be scored, with the target."""
        return self._as_json(Confidence(None, reason=reason))

    def _score(
        self, answer: Object, request: Object, doubt: str | None
    ) -> "tuple[Object, Inputs | None, str | None]":
        """Return an answer's confidence as JSON values, its inputs if it has a probability, and its
        question if it is known.

        Raises `WrongRow`, `InputError` or `ValidationError` if the answer cannot be read, or the
        calibrator is not for it.
        """
        if request.get("echo"):
            raise WrongRow("with 'echo' the prompt's tokens stand among the answer's")
        predictor = self.predictor
        row = {"id": "answer", "request": request, "response": answer}
        record = read_row(row, self.reading)
        if record.lacks == OTHER_TEXT:
            raise WrongRow(OTHER_TEXT)
        doubts = token_doubts(answer, record, request)
        doubts += [doubt] if doubt else []
        require_kind(record, predictor)
        names = requested_parts(request)
        confidence, x, parts = score_with_parts(predictor, record, self.target, names, doubts)
        inputs = None if x is None else (x[0], len(record.surprisal))
        return self._as_json(confidence, parts), inputs, record.asked or record.prompt

    def _as_json(self, confidence: Confidence, parts: list[ScoredPart] | None = None) -> Object:
        """Return a confidence as JSON values, with `parts` where there may be any."""
        plain = vars(confidence) | stated_target(self.target)
        if parts is None and self.predictor.fitted_on.parts is None:
            return plain
        values = [part._asdict() for part in parts or ()]
        return plain | {"parts": [fields | vars(fields.pop("confidence")) for fields in values]}


def token_doubts(answer: Object, record: Record, request: Object) -> list[str]:
    """Say why the tokens may not be those of the answer; `record` is the answer as it was read."""
    choice = next(iter(objects_in(answer.get("choices"))), {})
    messages = objects_in([choice.get("message"), choice.get("delta")])
    texts = [choice.get("text"), *(message.get("content") for message in messages)]
    if len({str(text) for text in texts if text}) > 1:
        return [OTHER_TEXT]  # which of them a client reads is unknown
    if record.reasoning in ("within", "alone"):
        return []  # the tokens include the reasoning
    stops = request.get("stop") or []
    stops = [*(stops if isinstance(stops, list) else [stops]), choice.get("stop_reason")]
    return [] if is_spelled(record.answer or "", record.tokens or (), stops) else [OTHER_TEXT]
