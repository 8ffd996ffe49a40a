"""Confidence of a server's chat answers, whole or as they are streamed."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import ValidationError

from tracecal.errors import InputError
from tracecal.logs.formats import read_row
from tracecal.logs.options import Reading
from tracecal.logs.record import as_frame
from tracecal.logs.steps import WrongRow
from tracecal.outside.agree import require_same_kind
from tracecal.outside.answer import Confidence, score_answer
from tracecal.outside.fitted import Fitted

PREFIX = "data:"
Object = dict[str, Any]


@dataclass(frozen=True)
class Scorer:
    """Gives answers their confidence; what cannot be computed is null with its reason."""

    fitted: Fitted
    reading: Reading
    error_rate: float | None = None

    def completed(self, answer: Object, asked: Object, shown: bool) -> Object:
        """A chat completion with `confidence` in every choice.

        Its log-probabilities are left out unless the client asked for them (`shown`).
        """
        choices = answer.get("choices")
        if not isinstance(choices, list):
            return answer
        told = []
        for choice in choices:
            confidence = self.of_choice(choice, answer.get("model"), asked)
            told.append(trimmed(choice, asked, shown) | {"confidence": confidence})
        return answer | {"choices": told}

    def stream(self, asked: Object, shown: bool) -> "Stream":
        """What follows one streamed answer."""
        return Stream(self, asked, shown)

    def of_choice(self, choice: Object, model: str | None, asked: Object) -> Object:
        """The confidence of one choice of a chat completion, as plain JSON."""
        row = {
            "id": "answer",
            "request": asked,
            "response": {"model": model, "choices": [choice]},
        }
        try:
            record = read_row(row, self.reading)
            require_same_kind(as_frame([record]), self.fitted.fitted_on)
        except (WrongRow, InputError, ValidationError) as error:
            return self._told(Confidence(None, reason=str(error)))
        if record.surprisal is None or record.entropy is None:
            return self._told(Confidence(None, reason=record.lacks))
        return self._told(
            score_answer(
                self.fitted,
                record.surprisal,
                record.entropy,
                self.error_rate,
                record.entropy_lower,
                record.entropy_upper,
            )
        )

    def _told(self, confidence: Confidence) -> Object:
        return asdict(confidence) | {"error_rate": self.error_rate}


@dataclass
class Stream:
    """Gathers a streamed answer's pieces, and gives each choice its confidence as it ends."""

    scorer: Scorer
    asked: Object
    shown: bool
    texts: dict[int, str] = field(default_factory=dict)
    logprobs: dict[int, list[Object]] = field(default_factory=dict)

    def line(self, line: str) -> str:
        """The line to pass on in place of a line of the server's events."""
        if not line.startswith(PREFIX):
            return line
        try:
            event = json.loads(line.removeprefix(PREFIX))
        except ValueError:  # [DONE]
            return line
        if not isinstance(event, dict) or not isinstance(event.get("choices"), list):
            return line
        choices = [self._choice(choice, event.get("model")) for choice in event["choices"]]
        return f"{PREFIX} {json.dumps(event | {'choices': choices}, ensure_ascii=False)}"

    def _choice(self, choice: Object, model: str | None) -> Object:
        index = choice.get("index", 0)
        piece = (choice.get("delta") or {}).get("content") or ""
        self.texts[index] = self.texts.get(index, "") + piece
        told = (choice.get("logprobs") or {}).get("content") or []
        self.logprobs.setdefault(index, []).extend(told)
        passed = trimmed(choice, self.asked, self.shown)
        if choice.get("finish_reason") is None:
            return passed
        whole = {
            "message": {"content": self.texts[index]},
            "logprobs": {"content": self.logprobs[index]},
            "finish_reason": choice["finish_reason"],
        }
        return passed | {"confidence": self.scorer.of_choice(whole, model, self.asked)}


def trimmed(choice: Object, asked: Object, shown: bool) -> Object:
    """A choice with the log-probabilities that the client asked for, and no more."""
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict):
        return choice
    if not shown:
        return choice | {"logprobs": None}
    most = asked.get("top_logprobs") or 0
    content = [
        token | {"top_logprobs": (token.get("top_logprobs") or [])[:most]}
        for token in logprobs.get("content") or ()
    ]
    return choice | {"logprobs": logprobs | {"content": content}}
