"""Objects of OpenAI's Responses API."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from tracecal.answers.formats.format import Format, Row
from tracecal.answers.formats.logprobs import Token, read_steps
from tracecal.answers.formats.stream import Stream, add_list, add_text
from tracecal.answers.raw_answer import RawAnswer, infer_stop_token
from tracecal.answers.reasoning import counts_reasoning
from tracecal.answers.step import Step
from tracecal.errors import WrongRow

FINISHES = {"completed": "stop", "incomplete": "length"}


class OutputText(BaseModel):
    type: str = "output_text"
    text: str = ""
    logprobs: list[Token] | None = None


class OutputItem(BaseModel):
    type: str = "message"
    phase: str | None = None
    content: list[OutputText] | None = None


class Response(BaseModel):
    """An object of the Responses API."""

    model: str | None = None
    status: str | None = None
    usage: Any = None
    output: list[OutputItem]


def read(row: Row) -> RawAnswer:
    """Read the texts of a Responses object, as the client's `output_text` joins them.

    Messages in the phase 'commentary', which precede calls of tools, are no part of the answer.
    """
    response = Response.model_validate(row)
    messages = [
        item for item in response.output if item.type == "message" and item.phase != "commentary"
    ]
    has_reasoning = any(item.type == "reasoning" for item in response.output)
    has_reasoning = has_reasoning or counts_reasoning(response.usage)
    texts = [text for item in messages for text in item.content or () if text.type == "output_text"]
    if not texts:
        raise WrongRow("it has no message with an output_text")
    steps = _steps(texts)
    answer = "".join(text.text for text in texts)
    return RawAnswer(
        answer=answer,
        thoughts="" if has_reasoning else None,
        steps=steps,
        finish_reason=FINISHES.get(response.status or ""),
        stop_token=infer_stop_token(answer, steps),
        model=response.model,
    )


def _steps(texts: Sequence[OutputText]) -> list[Step]:
    """Read the steps of texts; a text without log-probabilities becomes one empty step."""
    if not any(text.logprobs for text in texts):
        return []
    return [
        step
        for text in texts
        if text.text
        for step in read_steps(text.logprobs) or [Step(text.text, None, None)]
    ]


END_EVENTS = ("response.completed", "response.incomplete")  # the events that hold a whole response


class ResponseStream(Stream):
    """A streamed response: the last event's, or else the one that earlier events spell."""

    fields = (("type", str),)

    @classmethod
    def recognises(cls, value: Row) -> bool:
        """Whether an event's type is one of a response."""
        return super().recognises(value) and value["type"].startswith("response.")

    @staticmethod
    def is_piece(value: Row) -> bool:
        """Whether an object is an event: all that are recognised."""
        return True

    def continues(self, piece: Row) -> bool:
        """Whether no other response begins."""
        return not self.has_ended and piece["type"] != "response.created"

    def add(self, piece: Row) -> None:
        """Add what an event holds."""
        kind, response = piece["type"], piece.get("response")
        if kind in END_EVENTS and isinstance(response, dict):
            self.answer, self.has_ended = response, True
        elif isinstance(response, dict):
            self.answer |= {name: value for name, value in response.items() if name != "output"}
        output = self.answer.setdefault("output", [])
        if not isinstance(index := piece.get("output_index"), int) or index > len(output):
            return
        if index == len(output):
            output.append({"type": "message", "content": []})
        if isinstance(piece.get("item"), dict):  # as it begins, or whole
            output[index] = piece["item"] | {"content": piece["item"].get("content") or []}
        elif kind == "response.output_text.delta":
            part = _part_of(output[index], piece)
            add_text(part, "text", piece.get("delta"))
            add_list(part, "logprobs", piece.get("logprobs"))


def _part_of(item: Row, piece: Row) -> Row:
    """The part of an item's content that a piece belongs to."""
    content = item.setdefault("content", [])
    index = piece.get("content_index")
    if not isinstance(index, int) or index >= len(content):
        content.append({"type": "output_text", "text": ""})
        return content[-1]  # type: ignore[no-any-return]
    return content[index]  # type: ignore[no-any-return]


FORMAT = Format("openai_responses", lambda row: isinstance(row.get("output"), list), Response, read)
