"""Objects of OpenAI's Responses API."""

from typing import Any

from pydantic import BaseModel

from tracecal.answers.formats.token_list import Token, token_steps
from tracecal.answers.raw_answer import RawAnswer
from tracecal.answers.reasoning import counted
from tracecal.answers.stop_token import stop_token
from tracecal.answers.wrong_row import WrongRow


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


def read_response(body: dict[str, Any]) -> RawAnswer:
    """The text of a Responses object."""
    response = Response.model_validate(body)
    messages = [item for item in response.output if item.type == "message"]
    reasoned = any(item.type == "reasoning" for item in response.output) or counted(response.usage)
    texts = [part for item in messages for part in item.content or () if part.type == "output_text"]
    if not texts:
        raise WrongRow("it has no message with an output_text")
    steps = token_steps([token for part in texts for token in part.logprobs or ()])
    answer = "".join(part.text for part in texts)
    finish = {"completed": "stop", "incomplete": "length"}.get(response.status or "")
    return RawAnswer(
        answer=answer,
        thoughts="" if reasoned else None,
        steps=steps,
        finish_reason=finish,
        stop_token=stop_token(answer, steps),
        model=response.model,
    )
