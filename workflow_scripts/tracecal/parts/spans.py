"""Where the parts of an answer stand in its text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import NamedTuple

from tracecal.parts.documents import Node, documents, found, steps
from tracecal.parts.spec import Parts

_REST = re.compile(r".*", re.DOTALL)
_place = attrgetter("start", "end")
_SENTENCE = re.compile(r"\S(?:[^\n]*?[.!?]+[\"')\]]*+(?=\s|$)|[^\n]*?[。！？]+|[^\n]*)")


class Span(NamedTuple):
    """One part of an answer: `part`, the name it was asked for by; `name`, its own, which of a list
    tells its elements apart; its characters [start, end); and its value, as it is judged.
    """

    part: str
    name: str
    start: int
    end: int
    value: str


def spans(text: str, parts: Parts) -> list[Span] | None:
    """The parts that an answer has, in the order of the text; null where it does not parse.

    An answer without a JSON document that holds a part, without a named line or without the
    pattern of its conclusion does not parse.
    """
    if parts.in_json:
        spans = _json_spans(text, parts.in_json)
    elif parts.lines:
        spans = _line_spans(text, _by_form(parts.lines), _compiled(parts.pattern))
    elif parts.final:
        spans = _final_span(text, re.compile(parts.final, re.DOTALL))
    else:
        spans = list(_sentences(text))
    return sorted(spans, key=_place) or None


def _json_spans(text: str, paths: Sequence[str]) -> list[Span]:
    """The values at `paths` of the first document that has any."""
    for document in documents(text):
        values = [
            Span(path, name, node.start, node.end, node.text)
            for path in paths
            for name, node in _at(document, path)
        ]
        if values:
            return values
    return []


def _at(document: Node, path: str) -> Iterator[tuple[str, Node]]:
    return found(document, _steps(path))


_steps, _compiled = cache(steps), cache(re.compile)


def _line_spans(text: str, names: Mapping[str, str], pattern: re.Pattern) -> list[Span]:
    """The first line of each name; `names` by their own form without case."""
    spans: dict[str, Span] = {}
    start = 0
    search = pattern.search
    for line in text.split("\n"):
        if match := search(line):
            found, value = match.group("name", "value")
            name = names.get(found.strip().casefold())
            # A value of white space alone is none.
            if name and name not in spans and value and (shown := value.strip()):
                first = start + match.start("value") + value.index(shown)
                spans[name] = Span(name, name, first, first + len(shown), shown)
        start += len(line) + 1
    return list(spans.values())


def _final_span(text: str, pattern: re.Pattern) -> list[Span]:
    """The last match's group 'value', or what follows that match."""
    *_, last = [None, *pattern.finditer(text)]
    if last is None:
        return []
    if "value" in pattern.groupindex:
        span = _trimmed(last, "value", "final")
    else:
        span = _trimmed(_REST.match(text, last.end()), 0, "final")
    return [span] if span else []


def _sentences(text: str) -> Iterator[Span]:
    for number, match in enumerate(_SENTENCE.finditer(text), 1):
        value = match[0].rstrip()
        yield Span(
            "sentence", f"sentence {number}", match.start(), match.start() + len(value), value
        )


def _trimmed(match: re.Match, group: str | int, name: str) -> Span | None:
    """The span of a group without white space around it; null where nothing is left."""
    value = match[group]
    if not value or not (text := value.strip()):
        return None
    start = match.start(group) + value.index(text)
    return Span(name, name, start, start + len(text), text)


@cache
def _by_form(names: tuple[str, ...]) -> dict[str, str]:
    """The names by their form without case."""
    return {name.casefold(): name for name in names}
