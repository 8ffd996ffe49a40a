"""LangChain's `AIMessage`, alone or as ``dumpd``, ``message_to_dict`` and ``LLMResult`` hold it.

`response_metadata` holds the log-probabilities of chat completions. LangChain drops those of the
Responses API (langchain-openai 1.7).
"""

from typing import Any

from pydantic import BaseModel

from tracecal.answers.formats.format import Format, Row
from tracecal.answers.formats.logprobs import read_logprobs
from tracecal.answers.raw_answer import RawAnswer, infer_stop_token
from tracecal.answers.reasoning import Content, split_content
from tracecal.errors import WrongRow

# The fields in which LangChain wraps a message: ``dumpd``, ``message_to_dict`` and a generation.
WRAPPINGS = ("kwargs", "data", "message")


class AIMessage(BaseModel):
    """A message of a model."""

    content: Content = None
    additional_kwargs: dict[str, Any] = {}
    response_metadata: dict[str, Any]
    model: str | None = None  # of the result that held the message


class LangChain(BaseModel):
    """Fields of a message and of the objects that wrap it."""

    generations: Any = None
    llm_output: Any = None
    kwargs: Any = None
    data: Any = None
    message: Any = None
    content: Content = None
    additional_kwargs: Any = None
    response_metadata: Any = None


def recognises(row: Row) -> bool:
    """Whether a row is or wraps an object with `response_metadata`, or lists generations."""
    return _message(row) is not None or _is_result(row)


def read(row: Row) -> RawAnswer:
    """Read the message, or the first of the generations."""
    value = _generations(row)[0] if _is_result(row) else row
    if (fields := _message(value)) is None:
        raise WrongRow("its generation holds no message: only those of chat models are read")
    message = AIMessage.model_validate(fields)
    metadata = message.response_metadata
    answer, thoughts = split_content(message.content)
    hidden = message.additional_kwargs.get("reasoning_content")
    thoughts = hidden if isinstance(hidden, str) and hidden else thoughts
    steps = read_logprobs(metadata.get("logprobs"))
    return RawAnswer(
        answer=answer,
        thoughts=thoughts,
        steps=steps,
        finish_reason=_text(metadata, "finish_reason", "stop_reason", "done_reason"),
        stop_token=infer_stop_token(answer if thoughts is None else None, steps),
        model=_text(metadata, "model_name", "model") or message.model,
    )


def split(row: Row) -> dict[str, Row]:
    """The message that a row wraps, or those of the generations of an ``LLMResult``."""
    messages = [_message(value) for value in _generations(row) or [row]]
    if None in messages:
        return {"": row}
    if isinstance(output := row.get("llm_output"), dict) and output.get("model_name"):
        messages = [message | {"model": output["model_name"]} for message in messages if message]
    return {
        f"#choice-{number}" if number > 1 else "": message
        for number, message in enumerate(filter(None, messages), 1)
    }


def _message(value: Any) -> Row | None:
    """The fields of a message, out of what wraps it; None where there is none."""
    for _ in range(len(WRAPPINGS) + 1):
        if not isinstance(value, dict):
            return None
        if isinstance(value.get("response_metadata"), dict):
            return value
        value = next((value[name] for name in WRAPPINGS if name in value), None)
    return None


def _is_result(row: Row) -> bool:
    return bool(_generations(row))


def _generations(row: Row) -> list[Any]:
    """The generations of all prompts."""
    listed = row.get("generations")
    batches = listed if isinstance(listed, list) else []
    return [
        generation
        for batch in batches
        for generation in (batch if isinstance(batch, list) else [batch])
        if isinstance(generation, dict)
    ]


def _text(metadata: Row, *names: str) -> str | None:
    values = (metadata.get(name) for name in names)
    return next((value for value in values if isinstance(value, str)), None)


FORMAT = Format("langchain", recognises, LangChain, read, split=split)
