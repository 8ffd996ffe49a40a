"""Answers of Ollama."""

from typing import Any

from pydantic import BaseModel

from tracecal.answers.formats.token_list import Token, token_steps
from tracecal.answers.raw_answer import RawAnswer
from tracecal.answers.stop_token import stop_token


class OllamaMessage(BaseModel):
    content: str | None = None
    thinking: str | None = None


class Ollama(BaseModel):
    """An answer of Ollama's `/api/generate` or `/api/chat`."""

    model: str | None = None
    response: str | None = None
    thinking: str | None = None
    message: OllamaMessage | None = None
    done_reason: str | None = None
    logprobs: list[Token] | None = None


def read_ollama(body: dict[str, Any]) -> RawAnswer:
    """Ollama's format, of its completions or of its chat."""
    answer = Ollama.model_validate(body)
    text = answer.response if answer.message is None else answer.message.content
    thoughts = (answer if answer.message is None else answer.message).thinking or None
    steps = token_steps(answer.logprobs)
    return RawAnswer(
        answer=text,
        thoughts=thoughts,
        steps=steps,
        finish_reason=answer.done_reason,
        stop_token=stop_token(text if thoughts is None else None, steps),
        model=answer.model,
    )
