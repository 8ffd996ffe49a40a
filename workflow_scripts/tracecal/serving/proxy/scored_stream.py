"""A streamed answer with confidence, event by event."""

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientResponse

from tracecal.answers.event_stream import DONE as LAST_EVENT
from tracecal.answers.formats.openai_responses import END_EVENTS
from tracecal.answers.raw_answer import is_finish
from tracecal.serving.proxy.endpoints import Endpoint, drop_confidence, require_opaque, trim
from tracecal.serving.proxy.json_bodies import (
    BOM,
    LARGE,
    Object,
    TooLargeError,
    parse_json,
    unpack,
    work_on,
    write_json,
)
from tracecal.serving.proxy.scorer import Unscored

LINE_END = re.compile(rb"\r\n|\n|\r")
EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
LONGEST_END = 4  # bytes
FIELD = re.compile(rb"(?:event|id|retry)?:")  # that is no data, or a comment; clients ignore others
MAX_LINES = 10_000  # of an event, which has a few
MAX_CHOICES = 1000  # of an answer that is scored
DONE = LAST_EVENT.encode()
CUT_SHORT = "the stream ended without a finish_reason: the answer may be cut short"


@dataclass
class EventSplitter:
    """Cuts a stream into events of at most `max_bytes`; `pending` is what no event's end follows.

    Lines may end with CR, LF or both, as the standard says.
    """

    max_bytes: int
    pending: bytearray = field(default_factory=bytearray)
    has_begun: bool = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the events that `data` ends; raise `TooLargeError` for one beyond the bounds."""
        search_from = max(len(self.pending) - LONGEST_END + 1, 0)
        start, events = 0, []
        self.pending += data
        if not self.has_begun and len(self.pending) >= len(BOM):  # one may stand before all events
            self.pending, self.has_begun = self.pending.removeprefix(BOM), True
        for end in EVENT_END.finditer(self.pending, search_from):
            events.append(bytes(self.pending[start : end.start()]))
            start = end.end()
        del self.pending[:start]
        if len(self.pending) > self.max_bytes:
            raise TooLargeError(f"an event is larger than {self.max_bytes / 1e6:g} MB (--max-body)")
        if any(event.count(b"\n") + event.count(b"\r") > MAX_LINES for event in events):
            raise TooLargeError(f"an event has more than {MAX_LINES:,} lines")
        return events


def event_data(event: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the values of an event's `data` lines, and its other lines.

    >>> event_data(b"event: a\\ndata: 1")
    ([b'1'], [b'event: a'])
    """
    lines = LINE_END.split(event)
    data = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
    return data, [line for line in lines if line and line[:5] not in (b"data", b"data:")]


@dataclass
class StreamedChoice:
    """What has been streamed of a choice: pieces of the answer and of the reasoning before it.

    `logprobs` are the lists of log-probabilities, by their names; `index` is the choice's own.
    """

    index: Any = 0
    has_confidence: bool = False

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    logprobs: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether anything was streamed of it, and no end of it."""
        return not self.has_confidence and (
            any(self.texts + self.thoughts) or any(self.logprobs.values())
        )


@dataclass
class ScoredStream:
    """Passes on a streamed answer's events, and adds each choice's confidence as it ends.

    An answer of more than `max_bytes` is not scored. The stream `has_failed` once the server sent
    an error.
    """

    scorer: Unscored
    request: Object
    endpoint: Endpoint
    max_bytes: int
    size: int = 0
    choices: dict[Any, StreamedChoice] = field(default_factory=dict)
    last_chunk: Object = field(default_factory=dict)
    has_failed: bool = False

    def __post_init__(self) -> None:
        self.client_top = self.endpoint.client_top(self.request)

    async def events(self, response: ClientResponse) -> AsyncGenerator[list[bytes], None]:
        """Yield the events of a response with confidence, as many at once as have arrived."""
        splitter = EventSplitter(self.max_bytes)
        encoding = response.headers.get("Content-Encoding", "")
        async for chunk in unpack(response.content.iter_any(), encoding):
            arrived = [await self._score_event(event) for event in splitter.feed(chunk)]
            yield [event for several in arrived for event in several]
        yield [*await self._score_event(bytes(splitter.pending)), *self._last_event(is_cut=True)]

    async def _score_event(self, event: bytes) -> list[bytes]:
        if len(event) >= LARGE:
            return [await work_on(len(event), self.score_event, event)]
        endings = self._last_event() if event_data(event)[0] == [DONE] else []
        return [*endings, self.score_event(event)]

    def score_event(self, event: bytes) -> bytes:
        """Return the event to pass on instead of the server's.

        Raises `UnreadableError` where it cannot be parsed and might hold log-probabilities that the
        client did not request, or a confidence.
        """
        data, other_lines = event_data(event)
        require_opaque(b"\n".join(other_lines), self.client_top)
        lines = [line for line in other_lines if FIELD.match(line)]
        if data == [DONE]:
            lines.append(b"data: " + DONE)
        elif data:
            lines.append(b"data: " + self._score_data(b"\n".join(data)))
        return b"\n".join([*lines, b"", b""]) if lines else b""

    def _score_data(self, data: bytes) -> bytes:
        self.size += len(data)
        try:
            value = parse_json(data)
        except ValueError:
            return b"\ndata: ".join(require_opaque(data, self.client_top).split(b"\n"))
        drop_confidence(value)
        if isinstance(value, dict):
            self._add_confidence(value)
        trim(value, self.client_top)
        return write_json(value)

    def _add_confidence(self, value: Object) -> None:
        """Collect what an event holds, and set the confidence of what it ends."""
        choices, response = value.get("choices"), value.get("response")
        self.has_failed = self.has_failed or bool(value.get("error"))
        if isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict):
                    self._add_choice(choice, value)
        elif value.get("type") in END_EVENTS and isinstance(response, dict):
            self.scorer.add_confidence(response, self.request)

    def _add_choice(self, choice: Object, chunk: Object) -> None:
        """Collect a choice's piece; with the last one, set its `confidence`.

        A chat's is set in `delta` too, where the openai client's `.stream()` keeps it.
        """
        delta = choice.get("delta") if isinstance(choice.get("delta"), dict) else {}
        index = choice.get("index", 0)
        streamed = self.choices.get(str(index)) or StreamedChoice(index)
        if self._unscorable() is None:
            self.choices[str(index)] = streamed
            self._collect(choice, delta, streamed)
        self.last_chunk = {name: value for name, value in chunk.items() if name != "choices"}
        if not is_finish(choice.get("finish_reason")) or streamed.has_confidence:
            return
        self._end(choice, chunk, streamed)
        if choice.get("delta") is delta:
            delta["confidence"] = choice["confidence"]

    def _end(self, choice: Object, chunk: Object, streamed: StreamedChoice) -> None:
        streamed.has_confidence = True
        choice["confidence"] = self._confidence(choice, chunk, streamed)

    def _last_event(self, is_cut: bool = False) -> list[bytes]:
        """Return an event with the confidences of choices that ended without saying so; or none.

        Of a stream that may be cut short, as not even its own end came, no answer is kept.
        """
        opened = [choice for choice in self.choices.values() if choice.is_open]
        if self.has_failed or not opened:
            return []
        endings: list[Object] = []
        for streamed in opened:
            ending: Object = {"index": streamed.index, "finish_reason": None}
            self._end(ending, self.last_chunk, streamed)
            if is_cut:
                reason = "; ".join(filter(None, [ending["confidence"]["reason"], CUT_SHORT]))
                ending["confidence"] |= {"keep": None, "reason": reason}
            piece: Object = {"text": ""}
            if self.endpoint.is_chat:
                piece = {"delta": {"confidence": ending["confidence"]}}
            endings.append(ending | piece)
        return [b"data: " + write_json(self.last_chunk | {"choices": endings}) + b"\n\n"]

    def _collect(self, choice: Object, delta: Object, streamed: StreamedChoice) -> None:
        streamed.texts.append(self.endpoint.text_of(choice))
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        streamed.thoughts += [thought] if isinstance(thought, str) else []
        logprobs = choice.get("logprobs")
        for name, values in logprobs.items() if isinstance(logprobs, dict) else ():
            if isinstance(values, list):
                # Copies, as what is passed on is trimmed.
                copies = [dict(value) if isinstance(value, dict) else value for value in values]
                streamed.logprobs.setdefault(name, []).extend(copies)

    def _unscorable(self) -> str | None:
        """Return why an answer of this size is not scored; None where it is."""
        if self.size > self.max_bytes:
            return f"the answer is larger than {self.max_bytes / 1e6:g} MB"
        if len(self.choices) > MAX_CHOICES:
            return f"the answer has more than {MAX_CHOICES:,} choices"
        return None

    def _confidence(self, choice: Object, chunk: Object, streamed: StreamedChoice) -> Object:
        if (reason := self._unscorable()) is not None:
            return self.scorer.unknown(reason)
        answer = {name: chunk.get(name) for name in ("id", "model", "usage")}
        answer["choices"] = [self._joined_choice(choice, streamed)]
        return self.scorer.confidence(answer, self.request)

    def _joined_choice(self, choice: Object, streamed: StreamedChoice) -> Object:
        """Return what was streamed of a choice as a whole one, which ends as `choice` says."""
        joined = self.endpoint.join("".join(streamed.texts), streamed.logprobs)
        if streamed.thoughts and "message" in joined:
            joined["message"]["reasoning_content"] = "".join(streamed.thoughts)
        joined |= {name: choice.get(name) for name in ("finish_reason", "stop_reason")}
        joined["index"] = choice.get("index", 0)
        return joined
