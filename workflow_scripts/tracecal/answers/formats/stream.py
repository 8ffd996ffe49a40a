"""Streams: answers that come in pieces.

A `Stream` names the texts and lists that go on from piece to piece, and what ends an answer.
`Joined` collects the pieces of one: `joined.add(piece)`, then `joined.answer`. What no path can say
is a function, `prepare` or `join`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tracecal.answers.formats.layout import STATED_IDS, Marked, Row, value_below
from tracecal.answers.raw_answer import finish, stated_error

IDS = ("id", "responseId", "response_id")  # that servers give
ENDINGS = ("finish_reason", "finishReason")
EMPTY: tuple[Any, ...] = (None, "", [], {})


def has_no_id(row: Row) -> bool:
    """Whether a row has no id that users write: one with an id is a whole answer."""
    return not any(name in row for name in STATED_IDS)


@dataclass(frozen=True, kw_only=True)
class Stream(Marked):
    """How the pieces of a streamed answer are recognised, by `marks` of an event, and joined.

    Attributes
    ----------
    is_piece
        Whether a recognised object outside of a stream is a piece, and no whole answer.
    begins
        Whether a piece is the first one of another answer.
    each
        The list of choices, which `index` tells apart; texts and lists are below one of them.
    texts, lists
        Paths of the texts and lists that go on, as ``path`` or as ``path > path in the answer``;
        ``*`` stands for each list below a name.
    stated
        The fields of a choice of which the last one counts.
    prepare
        Changes a choice, or a piece without choices, before it is joined.
    ends
        Whether a piece ends an answer without choices.
    ends_with_choices
        Whether an answer ends with its choices; else with another id.
    join
        Joins a piece to an answer, instead of all this; says whether it ends it.
    """

    is_piece: Callable[[Row], bool] = has_no_id
    begins: Callable[[Row], bool] = lambda piece: False
    each: str = ""
    texts: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()
    prepare: Callable[[Row], Row] = lambda part: part
    ends: Callable[[Row], bool] = lambda piece: False
    ends_with_choices: bool = False
    join: Callable[[Row, Row], bool] | None = None

    @cached_property
    def places(self) -> list[tuple[bool, list[str], tuple[str, ...]]]:
        """Of each text and list: whether it is a text, its path in a piece and in the answer."""
        paths = [(True, path) for path in self.texts] + [(False, path) for path in self.lists]
        places = []
        for is_text, path in paths:
            source, _, target = path.partition(" > ")
            places.append((is_text, source.split("."), tuple((target or source).split("."))))
        return places


@dataclass
class Joined:
    """The pieces of an answer, or of one of its choices, so far."""

    stream: Stream
    has_ended: bool = False
    fields: Row = field(default_factory=dict)
    parts: dict[tuple[str, ...], list[Any]] = field(default_factory=dict)
    is_text: dict[tuple[str, ...], bool] = field(default_factory=dict)
    choices: dict[int, "Joined"] = field(default_factory=dict)

    def continues(self, piece: Any) -> bool:
        """Whether a value is a piece of this answer, and not of the next one."""
        if not isinstance(piece, dict):
            return False
        if not (self.stream.recognises(piece) or stated_error(piece)) or self.stream.begins(piece):
            return False
        if stated_error(piece) and has_no_id(piece):
            return not (self.has_ended or any(choice.has_ended for choice in self.choices.values()))
        ids = [next(filter(None, map(row.get, IDS)), None) for row in (self.fields, piece)]
        return ids[0] == ids[1] if all(ids) else not self.has_ended

    def add(self, piece: Row) -> None:
        """Add a piece of the answer, or the error that ends it."""
        stream = self.stream
        if error := stated_error(piece):
            self.fields["error"], self.has_ended = error, True
            return
        if stream.join is not None:
            self.has_ended = stream.join(self.fields, piece)
            return
        if not stream.each:
            self.add_part(piece)
            self.has_ended = stream.ends(piece)
            return
        stated = {name: value for name, value in piece.items() if value not in EMPTY}
        self.fields |= {
            name: stated[name] for name in stated if name not in (stream.each, "object")
        }
        for number, part in enumerate(piece[stream.each]):
            if isinstance(part, dict):
                index = part["index"] if isinstance(part.get("index"), int) else number
                self.choices.setdefault(index, Joined(stream)).add_part(part)
        if stream.ends_with_choices:
            self.has_ended = all(choice.has_ended for choice in self.choices.values())

    def add_part(self, part: Row) -> None:
        """Add a part of one choice, or of the only one."""
        part = self.stream.prepare(part)
        for is_text, source, target in self.stream.places:
            value = value_below(part, source[:-1])
            if not isinstance(value, dict):
                continue
            if source[-1] == "*":
                for name, values in value.items():
                    self._go_on((*target[:-1], name), values, is_text)
            else:
                self._go_on(target, value.get(source[-1]), is_text)
        joined = {source[0] for _, source, _ in self.stream.places}
        stated = self.stream.stated or [name for name in part if name not in joined]
        for name in stated:
            value = part.get(name)
            if value not in EMPTY and (name not in ENDINGS or finish(value) is not None):
                self.fields[name] = value
        self.has_ended = self.has_ended or any(map(self.fields.get, ENDINGS))

    def _go_on(self, target: tuple[str, ...], value: Any, is_text: bool) -> None:
        if isinstance(value, str if is_text else list):
            self.is_text[target] = is_text
            self.parts.setdefault(target, []).extend([value] if is_text else value)

    @property
    def is_empty(self) -> bool:
        """Whether no text and no list has gone on so far."""
        return not any(
            any(parts) if self.is_text[target] else parts for target, parts in self.parts.items()
        )

    @property
    def answer(self) -> Row:
        """A row of the server's format, as it would be without streaming."""
        answer = dict(self.fields)
        for target, parts in self.parts.items():
            row = answer
            for name in target[:-1]:
                row = row.setdefault(name, {})
            row[target[-1]] = "".join(parts) if self.is_text[target] else parts
        if self.choices:
            answer[self.stream.each] = [
                {"index": index, **choice.answer} for index, choice in sorted(self.choices.items())
            ]
        return answer
