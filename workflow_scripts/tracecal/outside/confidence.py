"""Confidence of a server's answers, complete or streamed."""

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
    """Adds confidence to answers; null with a reason where it cannot be computed."""

    fitted: Fitted
    reading: Reading
    error_rate: float | None = None

    def complete(self, answer: Object, request: Object, form: Form) -> Object:
        """An answer with `confidence` in every choice, or in the Responses object itself.

        It keeps only the log-probabilities that the client requested.
        """
        most = form.client_top(request)
        if isinstance(answer.get("output"), list):
            confidence = self.of_answer(answer, request)
            return form.trim(answer, most) | {"confidence": confidence}
        choices = answer.get("choices")
        if not isinstance(choices, list):
            return answer
        scored = []
        for choice in choices:
            alone = {"model": answer.get("model"), "choices": [choice]}
            confidence = self.of_answer(alone, request)
            scored.append(form.trim(choice, most) | {"confidence": confidence})
        return answer | {"choices": scored}

    def of_answer(self, answer: Object, request: Object) -> Object:
        """The confidence of an answer of one choice, as plain JSON."""
        try:
            confidence = self._confidence(answer, request)
        except (WrongRow, InputError, ValidationError) as error:
            confidence = Confidence(None, reason=str(error))
        return asdict(confidence) | {"error_rate": self.error_rate}

    def _confidence(self, answer: Object, request: Object) -> Confidence:
        if request.get("echo"):
            raise WrongRow("with 'echo' the prompt's tokens stand among the answer's")
        record = read_row({"id": "answer", "request": request, "response": answer}, self.reading)
        require_same_kind(as_frame([record]), self.fitted.fitted_on)
        if record.surprisal is None or record.entropy is None:
            return Confidence(None, reason=record.lacks)
        bounds = record.entropy_lower, record.entropy_upper
        return score_answer(self.fitted, record.surprisal, record.entropy, self.error_rate, *bounds)


@dataclass
class Stream:
    """Collects a streamed answer's chunks, and adds each choice's confidence as it ends."""

    scorer: Scorer
    request: Object
    form: Form
    texts: dict[int, str] = field(default_factory=dict)
    lists: dict[int, dict[str, list]] = field(default_factory=dict)

    def line(self, line: str) -> str:
        """The line to pass on instead of a line of the server's event stream."""
        if not line.startswith(PREFIX):
            return line
        try:
            event = json.loads(line.removeprefix(PREFIX))
        except ValueError:  # [DONE]
            return line
        if not isinstance(event, dict):
            return line
        if isinstance(event.get("choices"), list):
            event["choices"] = [
                self._choice(choice, event.get("model")) for choice in event["choices"]
            ]
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
        trimmed = self.form.trim(choice, self.form.client_top(self.request))
        if choice.get("finish_reason") is None:
            return trimmed
        whole = self.form.join(self.texts[index], lists)
        whole |= {name: choice.get(name) for name in ("finish_reason", "stop_reason")}
        answer = {"model": model, "choices": [whole]}
        return trimmed | {"confidence": self.scorer.of_answer(answer, self.request)}

    def _event(self, event: Object) -> Object:
        """An event of the Responses API; the last one holds the whole answer."""
        ended = event["type"] in ("response.completed", "response.incomplete")
        if ended and isinstance(event.get("response"), dict):
            whole = self.scorer.complete(event["response"], self.request, self.form)
            return event | {"response": whole}
        return self.form.trim(event, self.form.client_top(self.request))
