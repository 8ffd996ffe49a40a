"""The confidence of a server's answers, or the reasons why there is none.

`Scorer(predictor, reading, target).add_confidence(answer, request)` sets `confidence` in each
choice.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tracecal.answers.parts.parts import requested_parts
from tracecal.answers.raw_answer import UNDECODED, Known, Reasoning, StopToken
from tracecal.answers.reading import Reading
from tracecal.answers.record import Record, as_frame
from tracecal.answers.row import NEUTRAL, read_row
from tracecal.calibrator.confidence import Confidence, answer_inputs, confidence_of, doubted
from tracecal.calibrator.parts import ScoredPart, record_parts
from tracecal.calibrator.predictor import Predictor, Target
from tracecal.calibrator.schema import CalibrationData
from tracecal.calibrator.trace_kinds import NEXT_QUESTION, open_questions, require_same_kind
from tracecal.errors import InputError, WrongRow
from tracecal.estimators.trace_inputs import ENTROPY_INPUTS
from tracecal.io.log import LOGGER
from tracecal.serving.proxy.json_bodies import Object

if TYPE_CHECKING:  # slow to load, and not needed at import
    from tracecal.serving.proxy.watcher import Inputs, Watcher


class Unscored:
    """Gives the answers of a model without a calibrator an unknown confidence."""

    def add_confidence(self, answer: Object, request: Object) -> None:
        """Set `confidence` in every choice of an answer, or in the Responses object itself."""
        if isinstance(answer.get("output"), list):
            answer["confidence"] = self.confidence(answer, request)
        choices = answer.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                choice["confidence"] = self.confidence(answer | {"choices": [choice]}, request)

    def confidence(self, answer: Object, request: Object) -> Object:
        """Return the confidence of an answer of one choice, as plain JSON."""
        return self.unknown("the model that gave it has no calibrator here")

    def unknown(self, reason: str) -> Object:
        """Return the confidence of an answer that cannot be scored."""
        return vars(Confidence(None, reason=reason)) | {"error_rate": None}


@dataclass(frozen=True)
class Scorer(Unscored):
    """Gives answers their confidence. `keep` is None wherever there is a `reason`.

    Answers are kept by the `target`: an error rate, a guarantee or None. The `watcher` observes
    each answer, and withholds `keep` after an alarm. Raises `InputError` where the calibrator was
    not tested for the target, or takes columns that a server's answers do not have.
    """

    predictor: Predictor
    reading: Reading
    target: Target | None = None
    watcher: "Watcher | None" = None

    def __post_init__(self) -> None:
        if also := self.predictor.also:
            raise InputError(
                f"the calibrator takes {' and '.join(also)} beside the trace (--also), and "
                "a server's answers have none: calibrate without, for the proxy."
            )
        if self.target is not None:
            self.predictor.require_tested(self.target)

    def confidence(self, answer: Object, request: Object) -> Object:
        """As `Unscored.confidence`, with the probability."""
        inputs: Inputs | None = None
        try:
            confidence, inputs = self._score(answer, request)
        except (WrongRow, InputError, ValidationError) as error:
            confidence = self.unknown(str(error))
        except Exception as error:  # whatever the server wrote, the client is to have it
            LOGGER.warning("an answer cannot be scored (%s)", type(error).__name__)
            reason = f"its log-probabilities cannot be read ({type(error).__name__})"
            confidence = self.unknown(reason)
        if self.watcher is None:
            return confidence
        return self.watcher.observe(answer, request, confidence, inputs)

    def unknown(self, reason: str) -> Object:
        """As `Unscored.unknown`, at the target."""
        return self._as_json(Confidence(None, reason=reason))

    def _score(self, answer: Object, request: Object) -> "tuple[Object, Inputs | None]":
        """Return an answer's confidence as plain JSON, and its inputs where it has a probability.

        Raises `WrongRow` or `InputError` where the answer cannot be scored.
        """
        if request.get("echo"):
            raise WrongRow("with 'echo' the prompt's tokens stand among the answer's")
        predictor, processed = self.predictor, self.reading.processed
        if processed == "auto":
            processed = processing_requested(request)
        row = {"id": "answer", "request": request, "response": answer}
        record = replace(read_row(row, self.reading), processed=processed)
        kind = record.model, record.stop_token, record.processed, record.reasoning
        has_trace = record.surprisal is not None
        refusal, questions = kind_questions(predictor.fitted_on, *kind, has_trace)
        if refusal:
            return self.unknown(refusal), None
        is_of_parts = predictor.fitted_on.parts is not None
        needs_entropy = not ENTROPY_INPUTS.isdisjoint(predictor.inputs)
        is_complete = has_trace and not (record.entropy is None and needs_entropy)
        if not is_complete and not (is_of_parts and record.partial):
            return self.unknown(record.lacks), None
        doubts = [*token_doubts(answer, record, request), *questions]
        if is_of_parts:
            parts, reason = self._score_parts(record, request, doubts)
            return self._as_json(Confidence(None, reason=reason), parts), None
        bounds = record.entropy_lower, record.entropy_upper
        x = answer_inputs(predictor, record.surprisal, record.entropy, *bounds)
        confidence = confidence_of(predictor, x, self.target, record.top_k)
        if doubts:
            confidence = doubted(confidence, doubts)
        parts, _ = self._score_parts(record, request, doubts)
        return self._as_json(confidence, parts), (x[0], len(record.surprisal))

    def _score_parts(
        self, record: Record, request: Object, doubts: Sequence[str]
    ) -> tuple[list[Object] | None, str | None]:
        """Return an answer's parts as plain JSON and why it has none.

        The parts are None where neither the calibrator nor the request names any.
        """
        names = requested_parts(request)
        if self.predictor.fitted_on.parts is None and not names:
            return None, None
        parts, reason = record_parts(self.predictor, record, self.target, names)
        return [_part_as_json(part, doubts) for part in parts], reason

    def _as_json(self, confidence: Confidence, parts: list[Object] | None = None) -> Object:
        """Return a confidence as plain JSON, with the parts where there may be any."""
        is_of_cascade = isinstance(self.target, str)
        plain = vars(confidence) | {"error_rate": None if is_of_cascade else self.target}
        plain |= {"promise": self.target} if is_of_cascade else {}
        if parts is None and self.predictor.fitted_on.parts is None:
            return plain
        return plain | {"parts": parts or []}


def _part_as_json(part: ScoredPart, doubts: Sequence[str]) -> Object:
    """Return a part as plain JSON, its confidence's fields beside its own."""
    fields = part._asdict()
    return fields | vars(doubted(fields.pop("confidence"), doubts))


def processing_requested(request: Object) -> Known:
    """Return whether a request changes probabilities: by temperature, penalties or truncation.

    Unknown where it leaves the temperature to the server.

    >>> processing_requested({"temperature": 0}), processing_requested({"presence_penalty": 1})
    ('no', 'yes')
    """
    stated = {name: request[name] for name in NEUTRAL if request.get(name) is not None}
    if any(value not in NEUTRAL[name] for name, value in stated.items()):
        return "yes"
    return "no" if "temperature" in stated else "unknown"


@lru_cache(maxsize=1000)
def kind_questions(
    fitted_on: CalibrationData,
    model: str | None,
    stop_token: StopToken,
    processed: Known,
    reasoning: Reasoning,
    has_trace: bool,
) -> tuple[str | None, list[str]]:
    """Return why answers of a kind are refused, or None, and what is unknown of them."""
    kind = {"stop_token": stop_token, "processed": processed, "reasoning": reasoning}
    record = Record("answer", [0.0] if has_trace else None, model=model, **kind)
    answers = as_frame([record])
    try:
        require_same_kind(answers, fitted_on)
    except InputError as error:
        return str(error), []
    return None, open_questions(answers, fitted_on)


def token_doubts(answer: Object, record: Record, request: Object) -> list[str]:
    """Say why the tokens of an answer of one choice, `record` as read, may not be its own."""
    if record.reasoning in ("within", "alone"):
        return []  # the tokens are not those of the answer alone
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and isinstance(choices[0], dict) else {}
    stops = request.get("stop") or []
    stops = [*(stops if isinstance(stops, list) else [stops]), choice.get("stop_reason")]
    if not is_spelled(record.answer or "", record.tokens or (), stops):
        return ["the tokens with log-probabilities do not spell the answer"]
    if re.search(NEXT_QUESTION, record.answer or ""):
        return ["the answer runs on into another question, whose tokens count as its own"]
    return []


def is_spelled(text: str, tokens: Sequence[str | None], stops: Sequence[Any]) -> bool:
    """Return whether tokens spell a text, perhaps with a stop token or stop string behind it.

    Blanks at either end do not count, as servers strip them. Where tokens are parts of characters
    only the other tokens are compared.

    >>> is_spelled("Paris", ["Par", "is", "\\n"], ["\\n"]), is_spelled("Paris", ["Rome"], [])
    (True, False)
    """
    if not tokens or None in tokens:
        return False
    spelled, text = "".join(tokens).lstrip(), text.strip()
    if spelled.startswith(text):
        rest = spelled.removeprefix(text)
        is_stopped = any(isinstance(stop, str) and stop and stop in rest for stop in stops)
        return rest.strip() in ("", tokens[-1].strip()) or is_stopped
    return UNDECODED in spelled and _is_spelled_around(spelled, text)


def _is_spelled_around(spelled: str, text: str) -> bool:
    """Return whether what stands between parts of characters is in the text, in the same order."""
    end, n_parts = 0, spelled.count(UNDECODED)
    *fragments, last = spelled.split(UNDECODED)
    for fragment in fragments:
        start = text.find(fragment, end, end + n_parts + len(fragment))
        if start < 0:
            return False
        end = start + len(fragment)
    rest = text[end:]
    return any(last.startswith(rest[skipped:]) for skipped in range(n_parts + 1))
