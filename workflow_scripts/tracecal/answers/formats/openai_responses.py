"""Objects of OpenAI's Responses API."""

from typing import Any

from pydantic import BaseModel

from tracecal.answers.formats.format import Format, Row
from tracecal.answers.formats.token_list import Token, read_steps
from tracecal.answers.raw_answer import RawAnswer, infer_stop_token
from tracecal.answers.reasoning import counts_reasoning
from tracecal.errors import WrongRow

FINISHES = {"completed": "stop", "incomplete": "length"}


class OutputText(BaseModel):
    type: str = "output_text"
    text: str = ""
    logprobs: list[Token] | None = None


class OutputItem(BaseModel):
    type: str = "message"
    content: list[OutputText] | None = None


class Response(BaseModel):
    """An object of the Responses API."""

    model: str | None = None
    status: str | None = None
    usage: Any = None
    output: list[OutputItem]


def read(row: Row) -> RawAnswer:
    """Read the text of a Responses object."""
    response = Response.model_validate(row)
    messages = [item for item in response.output if item.type == "message"]
    has_reasoning = any(item.type == "reasoning" for item in response.output)
    has_reasoning = has_reasoning or counts_reasoning(response.usage)
    texts = [text for item in messages for text in item.content or () if text.type == "output_text"]
    if not texts:
        raise WrongRow("it has no message with an output_text")
    steps = read_steps([token for text in texts for token in text.logprobs or ()])
    answer = "".join(text.text for text in texts)
    return RawAnswer(
        answer=answer,
        thoughts="" if has_reasoning else None,
        steps=steps,
        finish_reason=FINISHES.get(response.status or ""),
        stop_token=infer_stop_token(answer, steps),
        model=response.model,
    )


FORMAT = Format("openai_responses", lambda row: isinstance(row.get("output"), list), Response, read)
