"""Spans: where the parts of an answer stand in its text, and what they say.

`find_spans(text, parts)` finds those of one answer, `locate_spans` those of many as a frame.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.answers.parts.json_document import find_documents, nodes_at, parse_path
from tracecal.answers.parts.parts import LINE, Parts
from tracecal.io.expressions import matches, searcher

# The columns of the spans of many answers; `row` is the number of the answer.
SPANS = {
    "row": pl.Int64,
    "part": pl.String,
    "name": pl.String,
    "first": pl.Int64,
    "last": pl.Int64,
    "value": pl.String,
}
_LINE = re.compile(LINE)  # faster, and in proportion to the length of a line
_start_and_end = attrgetter("start", "end")
# Marks are looked at from the first one of a run only, so that a long run is read once.
_END = re.compile(r"(?<![.!?])(?P<marks>[.!?]++)[\"')\]]*+(?!\S)")
_UNSPACED_END = re.compile(r"(?P<marks>[。！？]++)")
_parse_path = cache(parse_path)


class Span(NamedTuple):
    """One part of an answer.

    Attributes
    ----------
    part
        The name that was asked for.
    name
        Its own name, which tells the elements of a list apart.
    start, end
        Its characters [start, end) in the answer.
    value
        What it says, as it is judged.
    """

    part: str
    name: str
    start: int
    end: int
    value: str


def locate_spans(answers: pl.Series, parts: Parts) -> pl.DataFrame:
    """The spans of all answers, none of them missing, as rows of `SPANS` in their order."""
    counts, fields = [], []
    for text in answers.to_list():
        spans = find_spans(text, parts) or ()
        counts.append(len(spans))
        fields.extend(chain.from_iterable(spans))
    columns = [fields[at :: len(Span._fields)] for at in range(len(Span._fields))]
    return pl.DataFrame([np.repeat(np.arange(len(counts)), counts), *columns], schema=SPANS)


def find_spans(text: str, parts: Parts) -> list[Span] | None:
    """The parts of an answer, in the order of its text; None where it does not parse.

    It does not parse without a JSON document that holds a part, without a named line, or without
    the pattern of its conclusion. Raises `InputError` where a pattern takes too long.

    >>> find_spans("Capital: Lima", Parts(lines=["capital"]))
    [Span(part='capital', name='capital', start=9, end=13, value='Lima')]
    """
    if parts.in_json:
        spans = _json_spans(text, parts.in_json)
    elif parts.lines:
        spans = _line_spans(text, _casefold_names(parts.lines), parts.pattern)
    elif parts.final:
        spans = _final_span(text, parts.final)
    else:
        spans = list(_sentences(text))
    return sorted(spans, key=_start_and_end) or None


def _json_spans(text: str, paths: Sequence[str]) -> list[Span]:
    """The values at `paths` of the first document that has any."""
    for document in find_documents(text):
        spans = [
            Span(path, name, node.start, node.end, node.text)
            for path in paths
            for name, node in nodes_at(document, _parse_path(path))
        ]
        if spans:
            return spans
    return []


def _line_spans(text: str, names: Mapping[str, str], pattern: str) -> list[Span]:
    """The first line of each name; `names` are by their form without case."""
    spans: dict[str, Span] = {}
    start = 0
    search = _LINE.search if pattern == LINE else searcher(pattern, text)
    for line in text.split("\n"):
        if match := search(line):
            line_name, line_value = match.group("name", "value")
            name = names.get(line_name.strip().casefold())
            # A value of white space alone is none.
            if name and name not in spans and line_value and (value := line_value.strip()):
                first = start + match.start("value") + line_value.index(value)
                spans[name] = Span(name, name, first, first + len(value), value)
        start += len(line) + 1
    return list(spans.values())


def _final_span(text: str, pattern: str) -> list[Span]:
    """The group 'value' of the last match, or what follows that match."""
    *_, match = [None, *matches(pattern, text, dotall=True)]
    if match is None:
        return []
    has_group = "value" in match.groupdict()
    start = match.start("value") if has_group else match.end()
    spaced = (match["value"] or "") if has_group else text[start:]
    if not (value := spaced.strip()):
        return []
    start += spaced.index(value)
    return [Span("final", "final", start, start + len(value), value)]


def _sentences(text: str) -> Iterator[Span]:
    """The sentences of a text.

    A sentence ends with marks before white space; where none follow in its line, with Chinese or
    Japanese marks; else with the line. It begins with any character, and marks follow it.
    """
    number = base = 0
    for line in text.split("\n"):
        marks = chain(_END.finditer(line), _UNSPACED_END.finditer(line))
        ends = [(match.end("marks"), match.end()) for match in marks]
        position = 0
        for behind_marks, end in [*ends, (len(line) + 2, len(line))]:
            start = position + len(line[position:end]) - len(line[position:end].lstrip())
            if start < end and behind_marks > start + 1:
                number, position, value = number + 1, end, line[start:end].rstrip()
                first = base + start
                yield Span("sentence", f"sentence {number}", first, first + len(value), value)
        base += len(line) + 1


@cache
def _casefold_names(names: tuple[str, ...]) -> dict[str, str]:
    """The names by their form without case."""
    return {name.casefold(): name for name in names}
