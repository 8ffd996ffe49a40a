"""A server's answer with confidence: read whole, or event by event of a stream."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import ClientResponse

from tracecal.serving.proxy.confidence import Scorer
from tracecal.serving.proxy.wire import (
    Form,
    Object,
    TooLargeError,
    UnreadableError,
    json_object,
    mentions_logprobs,
    parsed,
    read,
    trim,
    unpacked,
)

LINE_END = re.compile(rb"\r\n|\n|\r")
EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
MOST_LINES = 10_000  # of an event, which has a few
DONE = b"[DONE]"
ENDED = ("response.completed", "response.incomplete")


@dataclass
class Events:
    """Cuts a stream into events. Lines may end with CR, LF or both, as the standard says."""

    most: int
    held: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> list[bytes]:
        """The events that `data` ends. Raises `TooLargeError` where one is larger than `most` bytes
        or `MOST_LINES`.
        """
        start, place, found = max(len(self.held) - 3, 0), 0, []  # an end is four bytes at most
        self.held += data
        for end in EVENT_END.finditer(self.held, start):
            found.append(bytes(self.held[place : end.start()]))
            place = end.end()
        del self.held[:place]
        if len(self.held) > self.most:
            raise TooLargeError(f"an event is larger than {self.most / 1e6:g} MB (--max-body)")
        if any(one.count(b"\n") + one.count(b"\r") > MOST_LINES for one in found):
            raise TooLargeError(f"an event has more than {MOST_LINES:,} lines")
        return found

    def rest(self) -> bytes:
        """What stands behind the last event's end."""
        return bytes(self.held)


@dataclass
class Choice:
    """What has been streamed of a choice."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    lists: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """How many tokens came with log-probabilities."""
        return max(map(len, self.lists.values()), default=0)


@dataclass
class Stream:
    """Passes on a streamed answer's events, and adds each choice's confidence as it ends.

    `usage` is what the server says that it counted, `begun` whether an event was readable, and
    `failed` whether the server sent an error.
    """

    scorer: Scorer
    request: Object
    form: Form
    most: int
    size: int = 0
    choices: dict[Any, Choice] = field(default_factory=dict)
    confidences: list[Object] = field(default_factory=list)
    usage: Object | None = None
    begun: bool = False
    failed: bool = False

    def __post_init__(self) -> None:
        self.most_likely = self.form.client_top(self.request)

    def event(self, event: bytes) -> bytes:
        """The event to pass on instead of the server's.

        Raises `UnreadableError` where it cannot be parsed and might hold log-probabilities that
        the client did not request.
        """
        lines = LINE_END.split(event)
        data = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
        if not event.strip():
            return b""
        if not data or data == [DONE]:
            return event + b"\n\n"
        others = [line + b"\n" for line in lines if line and line[:5] not in (b"data", b"data:")]
        return b"".join(others) + b"data: " + self._data(b"\n".join(data)) + b"\n\n"

    def _data(self, data: bytes) -> bytes:
        self.size += len(data)
        try:
            value = parsed(data)
        except ValueError as error:
            if self.most_likely is None and mentions_logprobs(data):
                raise UnreadableError("an event is not valid JSON") from error
            return b"\ndata: ".join(data.split(b"\n"))
        if isinstance(value, dict):
            self._add(value)
        trim(value, self.most_likely)
        return orjson.dumps(value)

    def _add(self, value: Object) -> None:
        choices, whole = value.get("choices"), value.get("response")
        self.begun, self.failed = True, self.failed or bool(value.get("error"))
        if isinstance(value.get("usage"), dict):
            self.usage = value["usage"]
        if isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict):
                    self._choice(choice, value)
        elif value.get("type") in ENDED and isinstance(whole, dict):
            self.scorer.add(whole, self.request)
            self.usage = whole.get("usage")
            if "confidence" in whole:
                self.confidences.append(whole["confidence"])

    def _choice(self, choice: Object, chunk: Object) -> None:
        """Collect a choice's piece; with the last one, set its `confidence`.

        A chat's is set in `delta` too, the place that the openai client's `.stream()` keeps.
        """
        held = self.choices.setdefault(str(choice.get("index", 0)), Choice())
        delta = choice.get("delta") if isinstance(choice.get("delta"), dict) else {}
        held.texts.append(self.form.piece(choice))
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        held.thoughts += [thought] if isinstance(thought, str) else []
        logprobs = choice.get("logprobs")
        for name, values in logprobs.items() if isinstance(logprobs, dict) else ():
            if isinstance(values, list) and self.size <= self.most:
                # Copies, as what is passed on is trimmed.
                own = [dict(one) if isinstance(one, dict) else one for one in values]
                held.lists.setdefault(name, []).extend(own)
        if choice.get("finish_reason") is None:
            return
        choice["confidence"] = self._confidence(choice, chunk, held)
        self.confidences.append(choice["confidence"])
        if choice.get("delta") is delta:
            delta["confidence"] = choice["confidence"]

    def _confidence(self, choice: Object, chunk: Object, held: Choice) -> Object:
        if self.size > self.most:
            return self.scorer.unknown(f"the answer is larger than {self.most / 1e6:g} MB")
        return self.scorer.of_answer(self._answer(choice, chunk, held), self.request)

    def _answer(self, choice: Object, chunk: Object, held: Choice) -> Object:
        """What was streamed of a choice as a whole answer, which ends as `choice` says."""
        whole = self.form.join("".join(held.texts), held.lists)
        if held.thoughts and "message" in whole:
            whole["message"]["reasoning_content"] = "".join(held.thoughts)
        whole |= {name: choice.get(name) for name in ("finish_reason", "stop_reason")}
        whole["index"] = choice.get("index", 0)
        return {name: chunk.get(name) for name in ("id", "model", "usage")} | {"choices": [whole]}


OWN_THREAD = 2**20  # bytes of an answer whose scoring would keep other clients waiting


async def whole(
    response: ClientResponse, scorer: Scorer, request: Object, form: Form, most: int
) -> bytes:
    """The answer with confidence and only the log-probabilities requested; at most `most` bytes."""
    content = await read(_content(response), most)
    given = content, scorer, request, form, response.status
    if len(content) < OWN_THREAD:
        return _scored(*given)
    return await asyncio.to_thread(_scored, *given)


def _scored(content: bytes, scorer: Scorer, request: Object, form: Form, status: int) -> bytes:
    """An answer's bytes with confidence; those of an error without log-probabilities."""
    answer, most = json_object(content), form.client_top(request)
    if answer is None:
        if status == 200 and most is None and mentions_logprobs(content):
            raise UnreadableError("its answer is not valid JSON")
        return content
    if status == 200:
        scorer.add(answer, request)
    elif not mentions_logprobs(content):
        return content
    trim(answer, most)
    return orjson.dumps(answer)


async def events(response: ClientResponse, stream: Stream) -> AsyncGenerator[list[bytes], None]:
    """The events of a server's response with confidence, as many at once as have arrived."""
    cut = Events(stream.most)
    async for chunk in _content(response):
        yield [await _event(event, stream) for event in cut.feed(chunk)]
    yield [await _event(cut.rest(), stream)]


async def _event(event: bytes, stream: Stream) -> bytes:
    if len(event) < OWN_THREAD:
        return stream.event(event)
    return await asyncio.to_thread(stream.event, event)


def _content(response: ClientResponse) -> AsyncIterator[bytes]:
    return unpacked(response.content.iter_any(), response.headers.get("Content-Encoding", ""))
