"""Confidence of a server's answers, whole or as they are streamed."""

import json
from dataclasses import asdict, dataclass, field

from pydantic import ValidationError

from tracecal.errors import InputError
from tracecal.logs.formats import read_row
from tracecal.logs.options import Reading
from tracecal.logs.record import as_frame
from tracecal.logs.steps import WrongRow
from tracecal.outside.agree import require_same_kind
from tracecal.outside.answer import Confidence, score_answer
from tracecal.outside.fitted import Fitted
from tracecal.outside.forms import Form, Object

PREFIX = "data:"


@dataclass(frozen=True)
class Scorer:
    """Gives answers their confidence; what cannot be computed is null with its reason."""

    fitted: Fitted
    reading: Reading
    error_rate: float | None = None

    def completed(self, answer: Object, asked: Object, form: Form) -> Object:
        """An answer with `confidence` in every choice, or in a Responses object itself.

        Its log-probabilities are left out but for those that the client asked for.
        """
        most = form.shown(asked)
        if isinstance(answer.get("output"), list):
            confidence = self.of_answer(answer, asked)
            return form.trimmed(answer, most) | {"confidence": confidence}
        choices = answer.get("choices")
        if not isinstance(choices, list):
            return answer
        scored = []
        for choice in choices:
            confidence = self.of_answer({"model": answer.get("model"), "choices": [choice]}, asked)
            scored.append(form.trimmed(choice, most) | {"confidence": confidence})
        return answer | {"choices": scored}

    def stream(self, asked: Object, form: Form) -> "Stream":
        """What follows one streamed answer."""
        return Stream(self, asked, form)

    def of_answer(self, answer: Object, asked: Object) -> Object:
        """The confidence of an answer of one choice, as plain JSON."""
        if asked.get("echo"):
            reason = "with 'echo' the prompt's tokens stand among the answer's"
            return self._as_json(Confidence(None, reason=reason))
        try:
            record = read_row({"id": "answer", "request": asked, "response": answer}, self.reading)
            require_same_kind(as_frame([record]), self.fitted.fitted_on)
        except (WrongRow, InputError, ValidationError) as error:
            return self._as_json(Confidence(None, reason=str(error)))
        if record.surprisal is None or record.entropy is None:
            return self._as_json(Confidence(None, reason=record.lacks))
        return self._as_json(
            score_answer(
                self.fitted,
                record.surprisal,
                record.entropy,
                self.error_rate,
                record.entropy_lower,
                record.entropy_upper,
            )
        )

    def _as_json(self, confidence: Confidence) -> Object:
        return asdict(confidence) | {"error_rate": self.error_rate}


@dataclass
class Stream:
    """Gathers a streamed answer's pieces, and gives each choice its confidence as it ends."""

    scorer: Scorer
    asked: Object
    form: Form
    texts: dict[int, str] = field(default_factory=dict)
    lists: dict[int, dict[str, list]] = field(default_factory=dict)

    def line(self, line: str) -> str:
        """The line to pass on in place of a line of the server's events."""
        if not line.startswith(PREFIX):
            return line
        try:
            event = json.loads(line.removeprefix(PREFIX))
        except ValueError:  # [DONE]
            return line
        if not isinstance(event, dict):
            return line
        if isinstance(event.get("choices"), list):
            event["choices"] = [self._choice(one, event.get("model")) for one in event["choices"]]
        elif str(event.get("type")).startswith("response."):
            event = self._event(event)
        else:
            return line
        return f"{PREFIX} {json.dumps(event)}"

    def _choice(self, choice: Object, model: str | None) -> Object:
        index = choice.get("index", 0)
        piece, logprobs = self.form.piece(choice)
        self.texts[index] = self.texts.get(index, "") + piece
        lists = self.lists.setdefault(index, {})
        for name, values in logprobs.items():
            if isinstance(values, list):
                lists.setdefault(name, []).extend(values)
        passed = self.form.trimmed(choice, self.form.shown(self.asked))
        if choice.get("finish_reason") is None:
            return passed
        whole = self.form.whole(self.texts[index], lists)
        whole |= {name: choice.get(name) for name in ("finish_reason", "stop_reason")}
        answer = {"model": model, "choices": [whole]}
        return passed | {"confidence": self.scorer.of_answer(answer, self.asked)}

    def _event(self, event: Object) -> Object:
        """An event of the Responses interface; the last one holds the whole answer."""
        ended = event["type"] in ("response.completed", "response.incomplete")
        if ended and isinstance(event.get("response"), dict):
            whole = self.scorer.completed(event["response"], self.asked, self.form)
            return event | {"response": whole}
        return self.form.trimmed(event, self.form.shown(self.asked))
