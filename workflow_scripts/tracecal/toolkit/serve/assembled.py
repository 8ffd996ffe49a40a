"""A streamed answer as the whole one that its server would have sent unstreamed."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tracecal.toolkit.serve.bodies import TooLargeError, UnreadableError, json_object
from tracecal.toolkit.serve.forms import Object
from tracecal.toolkit.serve.marks import DATA

# Texts that are streamed piece by piece; any other value replaces the one before.
PIECES = ("content", "text", "reasoning_content", "reasoning", "refusal", "arguments")
KINDS = {"chat.completion.chunk": "chat.completion"}


@dataclass
class Assembled:
    """Collects the events of an answer, at most `most` bytes of them."""

    most: int
    size: int = 0
    held: Object = field(default_factory=dict)

    def add(self, events: Iterable[bytes]) -> None:
        """Raises `TooLargeError`."""
        for event in events:
            self.size += len(event)
            if self.size > self.most:
                raise TooLargeError(f"it is larger than {self.most / 1e6:g} MB (--max-body)")
            found = DATA.search(event)
            if found and (value := json_object(found[1])):
                self.held = _joined(self.held, value)

    def answer(self) -> Object:
        """The whole answer; raises `UnreadableError` where the events hold none."""
        choices = self.held.get("choices")
        if self.held.get("error") or not choices:
            raise UnreadableError("its answer is none")
        for choice in choices:
            if isinstance(message := choice.pop("delta", None), dict):
                message.pop("confidence", None)  # the choice holds it too
                choice["message"] = {"role": "assistant", "content": None} | message
        kind = self.held.get("object")
        return self.held | {"object": KINDS.get(kind, kind), "choices": choices}


def _joined(held: Any, piece: Any, name: str = "") -> Any:
    """A value of several pieces: texts and lists are joined, and lists of objects by `index`."""
    if isinstance(held, dict) and isinstance(piece, dict):
        return held | {one: _joined(held.get(one), value, one) for one, value in piece.items()}
    if isinstance(held, list) and isinstance(piece, list):
        numbered = {one["index"]: one for one in held if _is_numbered(one)}
        if not all(map(_is_numbered, [*held, *piece])):
            return held + piece
        for one in piece:
            numbered[one["index"]] = _joined(numbered.get(one["index"]), one)
        return list(numbered.values())
    if isinstance(held, str) and isinstance(piece, str) and name in PIECES:
        return held + piece
    return held if piece is None else piece


def _is_numbered(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("index"), int)
