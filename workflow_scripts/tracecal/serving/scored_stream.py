"""A streamed answer with confidence, event by event."""

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientResponse

from tracecal.answers.formats.layouts import CHAT_STREAM, END_EVENTS
from tracecal.answers.formats.stream import Joined
from tracecal.answers.log_file import DONE as LAST_EVENT
from tracecal.answers.raw_answer import OTHER_TEXT, finish
from tracecal.serving.endpoints import Endpoint, drop_confidence, require_opaque, trim
from tracecal.serving.failures import SERVER_FAILURES
from tracecal.serving.json_bodies import (
    BOM,
    Object,
    TooLargeError,
    objects_in,
    parse_json,
    scoring_size,
    work_on,
    write_json,
)
from tracecal.serving.scorer import Unscored

LINE_END = re.compile(rb"\r\n|\n|\r")
EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
LONGEST_END = 4  # bytes
FIELD = re.compile(rb"(?:event|id|retry)?:")  # that is no data, or a comment; clients ignore others
MAX_LINES = 10_000  # of an event, which has a few
MAX_CHOICES = 1000  # of an answer that is scored
DONE, TEXT_EVENT = LAST_EVENT.encode(), "response.output_text.delta"
CUT_SHORT = "the stream ended without a finish_reason: the answer may be cut short"
UNREAD = "data of the stream cannot be read"
MIXED = "the stream has chunks of several answers: their id or model differs"
TOO_MANY = "the stream has more choices than the request asks for"
ERROR_LINE = re.compile(rb"event: ?error\s*")
WENT_ON = "the stream went on, or failed, after it had stated the answer's end"


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


def response_text(response: Object) -> str:
    """The text of an object of the Responses API, of all its messages."""
    items = objects_in(response.get("output"))
    parts = [part for item in items for part in objects_in(item.get("content"))]
    return "".join(str(part.get("text")) for part in parts if part.get("type") == "output_text")


def _is_done(data: list[bytes]) -> bool:
    return [value.strip() for value in data] == [DONE]


@dataclass
class StreamedChoice:
    """What has been streamed of a choice, whose own `index` it has.

    `ending` is the piece that states its end and the chunk with it, None before; `has_more` says
    that other pieces followed. `pieces` are what clients of the endpoint read; `texts` and the last
    whole `message`, what they may read as well.
    """

    index: Any = 0
    ending: tuple[Object, Object] | None = None
    has_more: bool = False
    has_confidence: bool = False
    pieces: Joined = field(default_factory=lambda: Joined(CHAT_STREAM))
    texts: Joined = field(default_factory=lambda: Joined(CHAT_STREAM))
    message: Any = None


@dataclass
class ScoredStream:
    """Passes on a streamed answer's events, and adds each choice's confidence.

    The event that states a choice's end is `withheld`, with its lines, until the stream itself has
    ended, and so is what follows it: a server may go on after an end. An answer of more than
    `max_bytes` is not scored. The stream `has_failed` once it broke off, the server sent an error
    or went on after an object of the Responses API; `responses` are those to score, whose streamed
    text is `texts`. `names` are its id and model. Each of its `doubts` is a reason to keep no
    answer, such as data that was no JSON object: some clients find a text there.
    """

    scorer: Unscored
    request: Object
    endpoint: Endpoint
    max_bytes: int
    request_size: int = 0
    size: int = 0
    choices: dict[Any, StreamedChoice] = field(default_factory=dict)
    responses: list[Object] = field(default_factory=list)
    withheld: list[tuple[list[bytes], Any]] = field(default_factory=list)
    last_chunk: Object = field(default_factory=dict)
    has_failed: bool = False
    texts: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    doubts: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.client_top = self.endpoint.client_top(self.request)

    @property
    def scoring_size(self) -> int:
        """Bytes to work on once the stream has ended."""
        return scoring_size(self.size, self.request_size, len(self.choices))

    async def events(self, response: ClientResponse) -> AsyncGenerator[list[bytes], None]:
        """Yield the events of a response with confidence, as many at once as have arrived.

        Nothing is passed on behind the event that ends a stream.
        """
        splitter, passed = EventSplitter(self.max_bytes), []
        try:
            async for chunk in response.content.iter_any():
                for event in splitter.feed(chunk):
                    if is_last := _is_done(event_data(event)[0]):
                        passed += await work_on(self.scoring_size, self._last_events)
                    passed.append(await work_on(len(event), self.score_event, event))
                    if is_last:
                        yield passed
                        return
                yield passed
                passed = []
            last = bytes(splitter.pending)
            passed.append(await work_on(len(last), self.score_event, last))
        except SERVER_FAILURES:
            self.has_failed = True
            yield [*passed, *await work_on(self.scoring_size, self._last_events)]
            raise
        yield [*passed, *await work_on(self.scoring_size, self._last_events, CUT_SHORT)]

    def score_event(self, event: bytes) -> bytes:
        """Return the event to pass on instead of the server's, empty where it is withheld.

        Raises `UnreadableError` where it cannot be parsed and might hold log-probabilities that the
        client did not request, or a confidence.
        """
        data, other_lines = event_data(event)
        require_opaque(b"\n".join(other_lines), self.client_top)
        lines = [line for line in other_lines if FIELD.match(line)]
        if not data:
            return b"\n".join([*lines, b"", b""]) if lines else b""
        if _is_done(data):
            return self._written(lines, DONE)
        self.has_failed = self.has_failed or any(map(ERROR_LINE.fullmatch, lines))
        content = b"\n".join(data)
        self.size += len(content)
        try:
            value = parse_json(content)
        except ValueError:
            value = b"\ndata: ".join(require_opaque(content, self.client_top).split(b"\n"))
        drop_confidence(value)
        passed, withheld = self._divide(value)
        self.withheld += [(lines, value) for value in withheld]
        events = [self._written(lines, value) for value in passed]
        if self.withheld and self._unscorable() is not None:
            events += self._release()
        return b"".join(events)

    def _written(self, lines: list[bytes], value: Any) -> bytes:
        """Return an event of a value, or of bytes as they are, without what nobody requested."""
        if not isinstance(value, bytes):
            trim(value, self.client_top)
            value = write_json(value)
        return b"\n".join([*lines, b"data: " + value, b"", b""])

    def _divide(self, value: Any) -> tuple[list[Any], list[Any]]:
        """Collect what an event holds; return what of it is passed on, and what is withheld."""
        content = value if isinstance(value, dict) else {}
        self.doubts |= set() if isinstance(value, dict) or value == b"" else {UNREAD}
        is_error = content.get("error") or "error" in (content.get("object"), content.get("type"))
        self.has_failed = self.has_failed or bool(is_error or self.responses)
        choices, response = content.get("choices"), content.get("response")
        answer = response if isinstance(response, dict) else content if choices else {}
        names = {name: answer[name] for name in ("id", "model") if answer.get(name)}
        self.names = names | self.names
        self.doubts |= set() if names.items() <= self.names.items() else {MIXED}
        if content.get("type") == TEXT_EVENT and self._unscorable() is None:
            self.texts.append(str(content.get("delta")))
        if content.get("type") in END_EVENTS and isinstance(response, dict):
            self.responses.append(response)
            return [], [value]
        ended, unended = [], []
        for choice in choices if isinstance(choices, list) else ():
            is_at_end = isinstance(choice, dict) and self._is_at_end(choice, content)
            (ended if is_at_end else unended).append(choice)
        if not any(isinstance(choice, dict) for choice in unended):
            return ([], [value]) if ended or self.withheld else ([value], [])
        if not ended:
            return [value], []
        return [value | {"choices": unended}], [value | {"choices": ended}]

    def _is_at_end(self, choice: Object, chunk: Object) -> bool:
        """Collect a choice's piece; return whether that states its end, or comes behind it."""
        index = choice.get("index", 0)
        streamed = self.choices.get(str(index)) or StreamedChoice(index)
        self.last_chunk = {name: value for name, value in chunk.items() if name != "choices"}
        is_end = finish(choice.get("finish_reason")) is not None and not streamed.has_confidence
        if self._unscorable() is not None:
            if is_end and streamed.ending is None:
                self._end(choice, chunk, streamed)
            return streamed.ending is not None
        self.choices[str(index)] = streamed
        has_content = self._collect(choice, streamed)
        if streamed.ending is not None:
            is_other_end = is_end and choice["finish_reason"] != streamed.ending[0]["finish_reason"]
            streamed.has_more = streamed.has_more or has_content or is_other_end
        elif is_end:
            streamed.ending = choice, chunk
        return streamed.ending is not None

    def _collect(self, choice: Object, streamed: StreamedChoice) -> bool:
        """Keep what a piece of a choice holds; return whether that is more than its end."""
        logprobs, delta = choice.get("logprobs"), choice.get("delta")
        lists = {  # copies, as what is passed on is trimmed
            name: [dict(value) if isinstance(value, dict) else value for value in values]
            for name, values in (logprobs.items() if isinstance(logprobs, dict) else ())
            if isinstance(values, list)
        }
        name = "delta" if self.endpoint.is_chat else "text"
        piece = Joined(CHAT_STREAM)
        for pieces in (piece, streamed.pieces):
            pieces.add_part({name: choice.get(name), "logprobs": lists})
        streamed.texts.add_part({name: choice.get(name) for name in ("delta", "text")})
        streamed.message = choice.get("message") or streamed.message
        stated = delta | {"role": None} if isinstance(delta, dict) else {}
        return not piece.is_empty or any([choice.get("message"), *stated.values()])

    def _release(self) -> list[bytes]:
        """Score what has ended; return the events that were withheld."""
        for streamed in self.choices.values():
            if streamed.ending is not None and not streamed.has_confidence:
                doubt = WENT_ON if streamed.has_more or self.has_failed else None
                self._end(*streamed.ending, streamed, doubt)
        for response in self.responses:
            is_other = "".join(self.texts).strip() != response_text(response).strip()
            self.doubts |= {OTHER_TEXT} if self.texts and is_other else set()
            doubt = self._doubt(WENT_ON if self.has_failed else None)
            self.scorer.add_confidence(response, self.request, doubt)
        events = [self._written(*event) for event in self.withheld]
        self.withheld, self.responses = [], []
        return events

    def _last_events(self, doubt: str | None = None) -> list[bytes]:
        """Return the events that were withheld, and one for choices whose end was not stated.

        These are not kept where there is a `doubt`.
        """
        events = self._release()
        opened = [  # of which something was streamed, and no end
            choice
            for choice in self.choices.values()
            if not (choice.ending or choice.has_confidence or choice.pieces.is_empty)
        ]
        if self.has_failed or not opened:
            return events
        endings: list[Object] = []
        for streamed in opened:
            ending: Object = {"index": streamed.index, "finish_reason": None}
            ending |= {"delta": {}} if self.endpoint.is_chat else {"text": ""}
            self._end(ending, self.last_chunk, streamed, doubt)
            endings.append(ending)
        return [*events, self._written([], self.last_chunk | {"choices": endings})]

    def _end(
        self, choice: Object, chunk: Object, streamed: StreamedChoice, doubt: str | None = None
    ) -> None:
        """Set a choice's `confidence`, in a chat's `delta` too, where the openai client's
        `.stream()` keeps it."""
        streamed.has_confidence = True
        if (reason := self._unscorable()) is not None:
            choice["confidence"] = self.scorer.unknown(reason)
        else:
            answer = {name: chunk.get(name) for name in ("id", "model", "usage")}
            answer["choices"] = [self._joined_choice(choice, streamed)]
            confidence = self.scorer.confidence(answer, self.request, self._doubt(doubt))
            choice["confidence"] = confidence
        if isinstance(choice.get("delta"), dict):
            choice["delta"]["confidence"] = choice["confidence"]

    def _unscorable(self) -> str | None:
        """Return why an answer of this size is not scored; None where it is."""
        if self.size > self.max_bytes:
            return f"the answer is larger than {self.max_bytes / 1e6:g} MB"
        if len(self.choices) > MAX_CHOICES:
            return f"the answer has more than {MAX_CHOICES:,} choices"
        return None

    def _doubt(self, doubt: str | None) -> str | None:
        """Add to a doubt what makes every decision of this stream doubtful."""
        n = self.request.get("n")
        n_asked = n if isinstance(n, int) and n > 0 else 1
        # A request of the older interface may hold several prompts.
        has_too_many = self.endpoint.is_chat and len(self.choices) > n_asked
        doubts = (doubt, *sorted(self.doubts), TOO_MANY if has_too_many else None)
        return "; ".join(filter(None, doubts)) or None

    def _joined_choice(self, choice: Object, streamed: StreamedChoice) -> Object:
        """Return what was streamed of a choice as a whole one, which ends as `choice` says."""
        pieces = streamed.pieces.answer
        stated = {name: choice.get(name) for name in ("finish_reason", "stop_reason")}
        joined = {"index": choice.get("index", 0), "logprobs": pieces.get("logprobs")} | stated
        texts = streamed.texts.answer
        joined["text"] = texts.get("text", "")
        if not self.endpoint.is_chat:
            return joined | {"delta": streamed.message or texts.get("message")}
        message = pieces.get("message", {})
        if not any(message.values()):  # a whole one may come in place of deltas
            message = streamed.message or {"content": ""}
        return joined | {"message": message, "delta": streamed.message}
