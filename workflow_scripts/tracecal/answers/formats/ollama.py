"""Answers of Ollama's `/api/generate` and `/api/chat`."""

from typing import Any

from pydantic import BaseModel

from tracecal.answers.formats.format import Format, Row
from tracecal.answers.formats.logprobs import read_logprobs
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


FORMAT = Format("ollama", recognises, Ollama, read)
