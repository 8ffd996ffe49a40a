"""Events of a stream, cut from its bytes."""

import re
from dataclasses import dataclass, field

from tracecal.serving.proxy.json_bodies import TooLargeError

LINE_END = re.compile(rb"\r\n|\n|\r")
EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
LONGEST_END = 4  # bytes
MAX_LINES = 10_000  # of an event, which has a few
DONE = b"[DONE]"


@dataclass
class EventSplitter:
    """Cuts a stream into events of at most `max_bytes`; `pending` is what no event's end follows.

    Lines may end with CR, LF or both, as the standard says.
    """

    max_bytes: int
    pending: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the events that `data` ends; raise `TooLargeError` for one beyond the bounds."""
        search_from = max(len(self.pending) - LONGEST_END + 1, 0)
        start, events = 0, []
        self.pending += data
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
