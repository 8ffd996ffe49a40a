"""Confidence of a server's answers, and the reasons why there is none."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tracecal.answers.parts.parts import requested_parts
from tracecal.answers.raw_answer import Known, Reasoning, StopToken
from tracecal.answers.reading import Reading
from tracecal.answers.record import Record, as_frame
from tracecal.answers.row import NEUTRAL, read_row
from tracecal.answers.stop_token import UNDECODED
from tracecal.answers.wrong_row import WrongRow
from tracecal.calibrator.parts import ScoredPart, record_parts
from tracecal.calibrator.schema import (
    NEXT_QUESTION,
    Fitted,
    FittedOn,
    Target,
    open_questions,
    require_same_kind,
)
from tracecal.calibrator.scoring import Confidence, answer_inputs, confidence_of, doubted
from tracecal.errors import InputError
from tracecal.estimators.trace_inputs import ENTROPY_INPUTS
from tracecal.io.log import LOGGER
from tracecal.serving.proxy.wire import Object

if TYPE_CHECKING:  # slow to load, and not needed at import
    from tracecal.serving.proxy.watcher import Inputs, Watcher


class Unscored:
    """Gives the answers of a model without a calibrator an unknown confidence."""

    def add(self, answer: Object, request: Object) -> None:
        """Set `confidence` in every choice of an answer, or in the Responses object itself."""
        if isinstance(answer.get("output"), list):
            answer["confidence"] = self.of_answer(answer, request)
        choices = answer.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                choice["confidence"] = self.of_answer(answer | {"choices": [choice]}, request)

    def of_answer(self, answer: Object, request: Object) -> Object:
        """The confidence of an answer of one choice, as plain JSON."""
        return self.unknown("the model that gave it has no calibrator here")

    def unknown(self, reason: str) -> Object:
        """The confidence of an answer that cannot be scored."""
        return vars(Confidence(None, reason=reason)) | {"error_rate": None}


@dataclass(frozen=True)
class Scorer(Unscored):
    """Gives answers their confidence. `keep` is null wherever there is a `reason`."""

    fitted: Fitted
    reading: Reading
    target: Target | None = None
    watcher: "Watcher | None" = None

    def __post_init__(self) -> None:
        """Raises `InputError` where the calibrator was not tested for the target, or takes columns
        that a server's answers do not have.
        """
        if self.fitted.also:
            raise InputError(
                f"the calibrator takes {' and '.join(self.fitted.also)} beside the trace (--also), "
                "and a server's answers have none: calibrate without, for the proxy."
            )
        if self.target is not None:
            self.fitted.require_tested(self.target)

    def of_answer(self, answer: Object, request: Object) -> Object:
        """As `Unscored`, with its probability."""
        scored: list[Inputs] = []
        confidence = self._of_answer(answer, request, scored)
        if self.watcher is None:
            return confidence
        return self.watcher.seen(answer, request, confidence, scored[0] if scored else None)

    def _of_answer(self, answer: Object, request: Object, told: "list[Inputs]") -> Object:
        """As `of_answer`; the inputs that were scored are appended to `told`."""
        try:
            confidence = self._confidence(answer, request, told)
        except (WrongRow, InputError, ValidationError) as error:
            return self.unknown(str(error))
        except Exception as error:  # whatever the server wrote, the client is to have it
            LOGGER.warning("an answer cannot be scored (%s)", type(error).__name__)
            return self.unknown(f"its log-probabilities cannot be read ({type(error).__name__})")
        return self._plain(*confidence)

    def unknown(self, reason: str) -> Object:
        """As `Unscored`, at the target."""
        return self._plain(Confidence(None, reason=reason), None)

    def _plain(self, confidence: Confidence, parts: Sequence[ScoredPart] | None) -> Object:
        """As plain JSON; with the parts where there may be any or the calibrator is of such."""
        of_cascade = isinstance(self.target, str)
        plain = vars(confidence) | {"error_rate": None if of_cascade else self.target}
        plain |= {"promise": self.target} if of_cascade else {}
        if parts is None and self.fitted.fitted_on.parts is None:
            return plain
        shown = [one._asdict() for one in parts or ()]
        return plain | {"parts": [one | vars(one.pop("confidence")) for one in shown]}

    def _confidence(
        self, answer: Object, request: Object, told: "list[Inputs]"
    ) -> tuple[Confidence, Sequence[ScoredPart] | None]:
        if request.get("echo"):
            raise WrongRow("with 'echo' the prompt's tokens stand among the answer's")
        record = self._record(answer, request)
        kind = record.model, record.stop_token, record.processed, record.reasoning
        traced = record.surprisal is not None
        refused, questions = _questions(self.fitted.fitted_on, *kind, traced)
        if refused:
            return Confidence(None, reason=refused), None
        needs_entropy = not ENTROPY_INPUTS.isdisjoint(self.fitted.inputs)
        of_parts, asked = self.fitted.fitted_on.parts is not None, requested_parts(request)
        lacking = record.surprisal is None or (record.entropy is None and needs_entropy)
        if lacking and not (of_parts and record.partial):
            return Confidence(None, reason=record.lacks), None
        doubts = [*_doubts(answer, record, request), *questions]
        of_each = None
        if of_parts or asked:
            parts, why = record_parts(self.fitted, record, self.target, asked)
            of_each = [one._replace(confidence=doubted(one.confidence, doubts)) for one in parts]
        if of_parts:
            return Confidence(None, reason=why), of_each
        bounds = record.entropy_lower, record.entropy_upper
        x = answer_inputs(self.fitted, record.surprisal, record.entropy, *bounds)
        scored = confidence_of(self.fitted, x, self.target, record.top_k)
        told.append((x[0], len(record.surprisal)))
        return doubted(scored, doubts), of_each

    def _record(self, answer: Object, request: Object) -> Record:
        """The answer as read."""
        processed = self.reading.processed
        processed = asked_processing(request) if processed == "auto" else processed
        row = {"id": "answer", "request": request, "response": answer}
        return replace(read_row(row, self.reading), processed=processed)


def asked_processing(request: Object) -> Known:
    """Whether a request changes probabilities: by temperature, penalties or truncation.

    Unknown where it leaves the temperature to the server.
    """
    stated = {name: request[name] for name in NEUTRAL if request.get(name) is not None}
    if any(value not in NEUTRAL[name] for name, value in stated.items()):
        return "yes"
    return "no" if "temperature" in stated else "unknown"


@lru_cache(maxsize=1000)
def _questions(
    fitted_on: FittedOn,
    model: str | None,
    ending: StopToken,
    processed: Known,
    reasoning: Reasoning,
    traced: bool,
) -> tuple[str | None, list[str]]:
    """Why `score` refuses answers of this kind, or null; and what it warns of."""
    surprisal = [0.0] if traced else None
    stated = {"stop_token": ending, "processed": processed, "reasoning": reasoning}
    frame = as_frame([Record("answer", surprisal, model=model, **stated)])
    try:
        require_same_kind(frame, fitted_on)
    except InputError as error:
        return str(error), []
    return None, open_questions(frame, fitted_on)


def _doubts(answer: Object, record: Record, request: Object) -> list[str]:
    """Why the tokens may not be those of the answer, one sentence each."""
    choice = _single_choice(answer)
    if record.reasoning in ("within", "alone"):
        return []  # the tokens are not those of the answer alone
    stops = request.get("stop") or []
    stops = [*(stops if isinstance(stops, list) else [stops]), choice.get("stop_reason")]
    if not spelled(record.answer or "", record.tokens or (), stops):
        return ["the tokens with log-probabilities do not spell the answer"]
    if re.search(NEXT_QUESTION, record.answer or ""):
        return ["the answer runs on into another question, whose tokens count as its own"]
    return []


def spelled(text: str, tokens: Any, stops: list[Any]) -> bool:
    """Whether tokens' texts spell an answer, perhaps with a stop token or stop string behind it.

    Blanks at either end do not count, as servers strip them. Where tokens are parts of characters
    only the others are compared.
    """
    if not tokens or None in tokens:
        return False
    joined, text = "".join(tokens).lstrip(), text.strip()
    if joined.startswith(text):
        rest = joined.removeprefix(text)
        stopped = any(isinstance(stop, str) and stop and stop in rest for stop in stops)
        return rest.strip() in ("", tokens[-1].strip()) or stopped
    return UNDECODED in joined and _spelled_around(joined, text)


def _spelled_around(joined: str, text: str) -> bool:
    """Whether what stands between parts of characters is in the text, in the same order."""
    place, parts = 0, joined.count(UNDECODED)
    *fragments, last = joined.split(UNDECODED)
    for fragment in fragments:
        found = text.find(fragment, place, place + parts + len(fragment))
        if found < 0:
            return False
        place = found + len(fragment)
    rest = text[place:]
    return any(last.startswith(rest[skipped:]) for skipped in range(parts + 1))


def _single_choice(answer: Object) -> Object:
    """The choice of an answer that has one; a Responses object in the form of a chat's choice."""
    if isinstance(answer.get("choices"), list):
        choice = answer["choices"][0]
        return choice if isinstance(choice, dict) else {}
    messages = [item for item in answer["output"] if item.get("type", "message") == "message"]
    parts = [part for item in messages for part in item.get("content") or ()]
    told = [part for part in parts if part.get("type", "output_text") == "output_text"]
    return {
        "message": {"content": "".join(part.get("text", "") for part in told)},
        "logprobs": {"content": [token for part in told for token in part.get("logprobs") or ()]},
        "finish_reason": {"completed": "stop", "incomplete": "length"}.get(answer.get("status")),
    }
