"""Answers of Ollama's `/api/generate` and `/api/chat`."""

from pydantic import BaseModel

from tracecal.answers.formats.format import Format, Row
from tracecal.answers.formats.token_list import Token, read_steps
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
    logprobs: list[Token] | None = None


def recognises(row: Row) -> bool:
    """Whether a row says that it is `done`, or its `logprobs` are objects, not numbers."""
    logprobs = row.get("logprobs")
    has_objects = isinstance(logprobs, list) and logprobs != []
    return "done" in row or (has_objects and all(isinstance(token, dict) for token in logprobs))


def read(row: Row) -> RawAnswer:
    """Read an answer of either endpoint."""
    answer = Ollama.model_validate(row)
    text = answer.response if answer.message is None else answer.message.content
    thoughts = (answer if answer.message is None else answer.message).thinking or None
    steps = read_steps(answer.logprobs)
    return RawAnswer(
        answer=text,
        thoughts=thoughts,
        steps=steps,
        finish_reason=answer.done_reason,
        stop_token=infer_stop_token(text if thoughts is None else None, steps),
        model=answer.model,
    )


FORMAT = Format("ollama", recognises, Ollama, read)
