"""Answers of Ollama's `/api/generate` and `/api/chat`."""

from typing import Any

from pydantic import BaseModel

from tracecal.answers.formats.format import Format, Row
from tracecal.answers.formats.logprobs import read_logprobs
from tracecal.answers.formats.stream import Stream, add_list, add_text
from tracecal.answers.raw_answer import RawAnswer, infer_stop_token


class OllamaMessage(BaseModel):
    content: str | None = None
    thinking: str | None = None


class Ollama(BaseModel):
    """An answer of Ollama."""

    model: str | None = None
    response: str | None = None
    thinking: str | None = None
    message: OllamaMessage | None = None
    done_reason: str | None = None
    logprobs: Any = None


def recognises(row: Row) -> bool:
    """Whether a row says that it is `done`, or has a `message` beside a list of `logprobs`."""
    has_message = isinstance(row.get("message"), dict) and isinstance(row.get("logprobs"), list)
    return "done" in row or has_message


def read(row: Row) -> RawAnswer:
    """Read an answer of either endpoint."""
    answer = Ollama.model_validate(row)
    text = answer.response if answer.message is None else answer.message.content
    thoughts = (answer if answer.message is None else answer.message).thinking or None
    steps = read_logprobs(answer.logprobs)
    return RawAnswer(
        answer=text,
        thoughts=thoughts,
        steps=steps,
        finish_reason=answer.done_reason,
        stop_token=infer_stop_token(text if thoughts is None else None, steps),
        model=answer.model,
    )


JOINED = ("message", "response", "thinking", "logprobs")


class OllamaStream(Stream):
    """An answer, whose last piece is `done`."""

    fields = (("done", bool),)

    @classmethod
    def recognises(cls, value: Row) -> bool:
        """Whether an object has a text or a message and says whether it is `done`."""
        return super().recognises(value) and ("message" in value or "response" in value)

    @staticmethod
    def is_piece(value: Row) -> bool:
        """Whether an object says that it is not `done`."""
        return not value["done"] and "created_at" in value and Stream.is_piece(value)

    def add(self, piece: Row) -> None:
        """Add what a piece holds."""
        self.answer |= {name: value for name, value in piece.items() if name not in JOINED}
        if isinstance(message := piece.get("message"), dict):
            joined = self.answer.setdefault("message", {})
            for name in ("content", "thinking"):
                add_text(joined, name, message.get(name))
        for name in ("response", "thinking"):
            add_text(self.answer, name, piece.get(name))
        add_list(self.answer, "logprobs", piece.get("logprobs"))
        self.has_ended = piece["done"]


FORMAT = Format("ollama", recognises, Ollama, read)
