"""Rows with a list of `outputs`: vLLM's offline ``RequestOutput``, and dspy's ``LM`` history.

vLLM's outputs have `token_ids` and `logprobs` by token id; dspy's have the `logprobs` of a chat.
"""

from typing import Any

from pydantic import BaseModel, Field

from tracecal.answers.formats.format import Format, Row, split_list
from tracecal.answers.formats.logprobs import read_logprobs
from tracecal.answers.raw_answer import RawAnswer, infer_stop_token


class Output(BaseModel):
    text: str
    token_ids: list[int] | None = None
    logprobs: Any = None
    reasoning_content: str | None = None
    finish_reason: str | None = None
    stop_reason: str | int | None = None


class Outputs(BaseModel):
    """A row with a list of outputs; of `messages`, the prompt is not what the model was given."""

    outputs: list[Output] = Field(min_length=1)
    prompt: str | None = None
    prompt_token_ids: list[int] | None = None
    messages: Any = None
    model: str | None = None
    response_model: str | None = None


def read(row: Row) -> RawAnswer:
    """Read the first output."""
    request = Outputs.model_validate(row)
    output = request.outputs[0]
    steps = read_logprobs(output.logprobs, output.token_ids)
    thoughts = output.reasoning_content or None
    text = output.text if thoughts is None else None
    return RawAnswer(
        answer=output.text,
        thoughts=thoughts,
        steps=steps,
        token_ids=output.token_ids,
        prompt=request.prompt if request.messages is None else None,
        prompt_token_ids=request.prompt_token_ids,
        finish_reason=output.finish_reason,
        stop_token=infer_stop_token(text, steps, output.stop_reason),
        model=request.response_model or request.model,
    )


def recognises(row: Row) -> bool:
    """Whether the `outputs` of a row are objects with a `text`."""
    outputs = row.get("outputs")
    return (
        isinstance(outputs, list)
        and bool(outputs)
        and all(isinstance(output, dict) and "text" in output for output in outputs)
    )


FORMAT = Format("outputs", recognises, Outputs, read, split=lambda row: split_list(row, "outputs"))
