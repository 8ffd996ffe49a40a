"""Saved streams of servers: the chunks of answers, joined into whole answers.

A stream is text of server-sent events, as `curl -N` prints it, or chunks as JSON: of chat
completions, of older completions, or the events of OpenAI's Responses API. `read_events(text)`
reads the first, `join_chunks(values)` joins either.
"""

import re
from collections.abc import Iterable
from typing import Any

from tracecal.answers.formats.format import Row
from tracecal.answers.raw_answer import is_finish
from tracecal.answers.reasoning import split_content
from tracecal.errors import WrongRow
from tracecal.io.input_files import parsed_json

DONE = "[DONE]"  # the event that ends an answer
END_EVENTS = ("response.completed", "response.incomplete")  # the events that hold a whole response
CHUNKS = ("chat.completion.chunk", "text_completion.chunk")
_EVENT_END = re.compile(r"(?:\r\n|\n|\r(?!\n)){2,}")
_LINE_END = re.compile(r"\r\n|\n|\r")


def is_event_stream(text: str) -> bool:
    """Whether a text begins as server-sent events do.

    >>> is_event_stream('data: {"choices": []}')
    True
    """
    return text.lstrip("\r\n ").startswith(("data:", "event:", ":"))  # a comment begins with ':'


def is_chunk(value: Any) -> bool:
    """Whether a JSON value is a chunk of a streamed completion."""
    return isinstance(value, dict) and value.get("object") in CHUNKS


def read_events(text: str) -> list[Row]:
    """The answers of server-sent events. Raises `WrongRow` where one is not JSON.

    >>> text = 'data: {"choices": [{"text": "Li"}]}\\n\\ndata: {"choices": [{"text": "ma"}]}\\n\\n'
    >>> read_events(text)[0]["choices"][0]["text"]
    'Lima'
    """
    values: list[Any] = []
    for number, event in enumerate(filter(str.strip, _EVENT_END.split(text)), 1):
        lines = [line for line in _LINE_END.split(event) if line.startswith("data:")]
        data = "\n".join(line[5:].removeprefix(" ") for line in lines)
        if data.strip() == DONE:
            values.append(DONE)
        elif data:
            try:
                values.append(parsed_json(data))
            except ValueError as error:
                raise WrongRow(f"event {number} is not JSON ({error})") from error
    return join_chunks(values)


def join_chunks(values: Iterable[Any]) -> list[Row]:
    """Join the chunks of streams that follow one another, which have an id each or end with DONE.

    Raises `WrongRow` where there is no answer among them.
    """
    answers: list[Row] = []
    current: Row | None = None
    for value in values:
        if value == DONE:
            current = None
            continue
        if not isinstance(value, dict):
            raise WrongRow("an event is no JSON object")
        if value.get("type") in END_EVENTS and isinstance(value.get("response"), dict):
            answers.append(value["response"])
        if not isinstance(value.get("choices"), list):
            continue
        if current is None or current["id"] != value.get("id"):
            current = {"id": value.get("id"), "choices": []}
            answers.append(current)
        _add_chunk(current, value)
    if not answers:
        raise WrongRow("its events hold no answer: neither choices nor a completed response")
    return answers


def _add_chunk(answer: Row, chunk: Row) -> None:
    """Add what a chunk holds to an answer."""
    answer |= {name: value for name, value in chunk.items() if name != "choices" and value}
    answer.pop("object", None)
    choices = {choice["index"]: choice for choice in answer["choices"]}
    for piece in filter(lambda piece: isinstance(piece, dict), chunk["choices"]):
        index = piece["index"] if isinstance(piece.get("index"), int) else 0
        if index not in choices:
            choices[index] = {"index": index, "finish_reason": None}
            answer["choices"].append(choices[index])
        _add_piece(choices[index], piece)


def _add_piece(choice: Row, piece: Row) -> None:
    """Add a piece to a choice: texts are joined, lists extended."""
    if isinstance(delta := piece.get("delta"), dict):
        message = choice.setdefault("message", {"content": ""})
        if isinstance(parts := delta.get("content"), list):  # as Mistral has it
            text, thoughts = split_content(parts)
            delta = delta | {"content": text, "reasoning_content": thoughts}
        for name in ("content", "reasoning_content", "reasoning"):
            if isinstance(text := delta.get(name), str):
                message[name] = message.get(name, "") + text
    if isinstance(piece.get("text"), str):
        choice["text"] = choice.get("text", "") + piece["text"]
    if isinstance(piece.get("token_ids"), list):
        choice.setdefault("token_ids", []).extend(piece["token_ids"])
    if isinstance(logprobs := piece.get("logprobs"), dict):
        joined = choice.setdefault("logprobs", {})
        for name, values in logprobs.items():
            if isinstance(values, list):
                joined.setdefault(name, []).extend(values)
    if is_finish(piece.get("finish_reason")):
        choice["finish_reason"] = piece["finish_reason"]
    if piece.get("stop_reason") is not None:
        choice["stop_reason"] = piece["stop_reason"]
