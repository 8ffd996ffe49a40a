"""Saved streams of servers: the pieces of answers, joined into whole answers.

A stream is text of server-sent events, as `curl -N` prints it, or its pieces as JSON, one a line or
in a list; a format's module has its kind. `read_stream(text)` reads either from a text,
`join_rows(rows)` joins the pieces among the rows of a file.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tracecal.answers.formats.format import Row
from tracecal.answers.formats.layouts import LAYOUTS
from tracecal.answers.formats.stream import IDS, Joined, Stream
from tracecal.errors import WrongRow
from tracecal.io.input_files import parsed_json, parsed_json_sequence
from tracecal.io.log import LOGGER

DONE = "[DONE]"  # the event that ends an answer
STREAMS = [layout.stream for layout in LAYOUTS.values() if layout.stream is not None]
_EVENT_END = re.compile(r"(?:\r\n|\n|\r(?!\n)){2,}")
_LINE_END = re.compile(r"\r\n|\n|\r")


def is_event_stream(text: str) -> bool:
    """Whether a text begins as server-sent events do.

    >>> is_event_stream('data: {"choices": []}')
    True
    """
    return text.lstrip("\r\n ").startswith(("data:", "event:", ":"))  # a comment begins with ':'


def read_stream(text: str) -> list[Row] | None:
    """The answers of a text of events, or of pieces as JSON; None for any other text.

    >>> piece = '{"model": "m", "created_at": "", "response": "Li", "done": false}'
    >>> read_stream(piece)[0]["response"]
    'Li'
    """
    if is_event_stream(text):
        return read_events(text)
    if not text.lstrip().startswith(("{", "[")):
        return None
    values = parsed_json_sequence(text)
    values = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    if not values or _kind_of_piece(values[0]) is None:
        return None
    joined = (value for _, value in _join(("", value) for value in values))
    return [value.answer if isinstance(value, Joined) else value for value in joined]


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
    return _join_events(values)


def join_rows(rows: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Join the pieces of streams among the located rows of a file; other rows stay.

    >>> [*join_rows([("row 1", {"id": "a", "answer": "Lima"})])]
    [('row 1', {'id': 'a', 'answer': 'Lima'})]
    """
    number = 0
    for location, value in _join(rows):
        if isinstance(value, Joined):
            number += 1
            yield location, with_id(value.answer, number)
        else:
            yield location, value


def with_id(answer: Row, number: int) -> Row:
    """A streamed answer with an id: its number, where the server gave it none.

    >>> with_id({"response": "Lima"}, 2)
    {'response': 'Lima', 'id': 'stream-2'}
    """
    return answer if any(map(answer.get, IDS)) else answer | {"id": f"stream-{number}"}


def _join(rows: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield located rows: whole ones as they are, and a `Joined` for the pieces of an answer."""
    current: Joined | None = None
    begin = ""
    for location, value in rows:
        if current is not None and _continues(current, value):
            current.add(value)
            continue
        if current is not None:
            yield begin, current
        kind = _kind_of_piece(value)
        current, begin = (None if kind is None else Joined(kind)), location
        if current is None:
            yield location, value
        else:
            current.add(value)
    if current is not None:
        yield begin, current


def _kind_of_piece(value: Any) -> Stream | None:
    """Return the kind of stream that a JSON value is a piece of; None for whole answers."""
    if not isinstance(value, dict):
        return None
    kinds = (stream for stream in STREAMS if stream.recognises(value) and stream.is_piece(value))
    return next(kinds, None)


def _continues(joined: Joined, value: Any) -> bool:
    is_piece = isinstance(value, dict) and joined.stream.recognises(value)
    return is_piece and joined.continues(value)


def _join_events(values: Iterable[Any]) -> list[Row]:
    """Join the events of streams that follow one another.

    Raises `WrongRow` where there is no answer among them; says how many events are no pieces.
    """
    streams: list[Joined] = []
    current: Joined | None = None
    n_others = 0
    for value in values:
        if value == DONE:
            current = None
            continue
        if not isinstance(value, dict):
            raise WrongRow("an event is no JSON object")
        kind = next((stream for stream in STREAMS if stream.recognises(value)), None)
        if kind is None:
            n_others += 1
            continue
        if current is None or current.stream is not kind or not current.continues(value):
            current = Joined(kind)
            streams.append(current)
        current.add(value)
    if not streams:
        raise WrongRow("its events hold no answer: neither choices nor a completed response")
    if n_others:
        LOGGER.warning("left out %d events of streams, which are no pieces of answers", n_others)
    return [stream.answer for stream in streams]
