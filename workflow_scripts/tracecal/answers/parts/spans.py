"""Where the parts of an answer stand in its text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.answers.parts.json_document import documents, found, steps
from tracecal.answers.parts.parts import LINE, MARKS, Parts
from tracecal.io.expressions import matches, searcher

# The columns of spans of many answers; `row` is the number of a span's answer.
PLACES = {
    "row": pl.Int64,
    "part": pl.String,
    "name": pl.String,
    "first": pl.Int64,
    "last": pl.Int64,
    "value": pl.String,
}
# White space as `str.strip` and \s know it, up to U+3000; that of Polars lacks \x1c to \x1f.
_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))
_LINE = re.compile(LINE)  # quicker, and in proportion to a line's length
_place = attrgetter("start", "end")
# Marks are looked at from the first of a row only, so that a long row is read once.
_END = re.compile(r"(?<![.!?])(?P<marks>[.!?]++)[\"')\]]*+(?!\S)")
_UNSPACED_END = re.compile(r"(?P<marks>[。！？]++)")


class Span(NamedTuple):
    """One part of an answer: `part`, the name it was asked for by; `name`, its own, which of a list
    tells its elements apart; its characters [start, end); and its value, as it is judged.
    """

    part: str
    name: str
    start: int
    end: int
    value: str


def places(answers: pl.Series, parts: Parts) -> pl.DataFrame:
    """The `spans` of all answers, none of which is null, as rows of PLACES in their order."""
    if parts.lines and parts.pattern == LINE:
        return _line_places(answers, parts.lines)
    count, flat = [], []
    for text in answers.to_list():
        found = spans(text, parts) or ()
        count.append(len(found))
        flat.extend(chain.from_iterable(found))
    columns = [flat[at :: len(Span._fields)] for at in range(len(Span._fields))]
    return pl.DataFrame([np.repeat(np.arange(len(count)), count), *columns], schema=PLACES)


def spans(text: str, parts: Parts) -> list[Span] | None:
    """The parts that an answer has, in the order of the text; null where it does not parse.

    An answer without a JSON document that holds a part, without a named line or without the
    pattern of its conclusion does not parse. Raises `InputError` where a pattern takes too long.
    """
    if parts.in_json:
        spans = _json_spans(text, parts.in_json)
    elif parts.lines:
        spans = _line_spans(text, _by_form(parts.lines), parts.pattern)
    elif parts.final:
        spans = _final_span(text, parts.final)
    else:
        spans = list(_sentences(text))
    return sorted(spans, key=_place) or None


def _json_spans(text: str, paths: Sequence[str]) -> list[Span]:
    """The values at `paths` of the first document that has any."""
    for document in documents(text):
        values = [
            Span(path, name, node.start, node.end, node.text)
            for path in paths
            for name, node in found(document, _steps(path))
        ]
        if values:
            return values
    return []


_steps = cache(steps)


def _line_spans(text: str, names: Mapping[str, str], pattern: str) -> list[Span]:
    """The first line of each name; `names` by their own form without case."""
    spans: dict[str, Span] = {}
    start = 0
    search = _LINE.search if pattern == LINE else searcher(pattern, text)
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


def _line_places(answers: pl.Series, names: Sequence[str]) -> pl.DataFrame:
    """What `_line_spans` finds by the pattern LINE, in all answers at once.

    The colon of LINE is the first of its line, since nothing that it reads before holds one.
    """
    row, line, part, tail, value = map(pl.col, ("row", "line", "part", "tail", "value"))
    size = line.str.len_chars().cast(pl.Int64) + 1  # a line break or an answer's end is one
    lines = (
        pl.DataFrame({"row": np.arange(len(answers)), "line": answers})
        .with_columns(line.str.split("\n"), base=size.cum_sum() - size)
        .explode("line")
        .with_columns(end=size.cum_sum() - 1 - pl.col("base"))
        .with_columns(line.str.splitn(":", 2).struct.rename_fields(["part", "tail"]))
        .unnest("line")
        .drop_nulls("tail")
        .with_columns(
            part.str.strip_chars_start(MARKS).str.strip_chars_end("*"),
            tail.str.strip_chars_start("*").str.strip_chars_start(" \t"),
        )
    )
    forms = _by_form(tuple(names))
    known = {
        text: name
        for text in lines["part"].unique().to_list()
        if "*" not in text and (name := forms.get(text.strip().casefold()))
    }
    return (
        lines.with_columns(
            part.replace_strict(known, default=None, return_dtype=pl.Enum(names)),
            value=tail.str.strip_chars(_SPACE),
            first=pl.col("end") - tail.str.len_chars(),
        )
        .filter(part.is_not_null(), value != "", tail.str.starts_with(value))
        .filter((row * len(names) + part.to_physical()).is_first_distinct())
        .with_columns(name="part", last=pl.col("first") + value.str.len_chars())
        .select(pl.col(name).cast(kind) for name, kind in PLACES.items())
    )


def _final_span(text: str, pattern: str) -> list[Span]:
    """The last match's group 'value', or what follows that match."""
    *_, last = [None, *matches(pattern, text, dotall=True)]
    if last is None:
        return []
    named = "value" in last.groupdict()
    start = last.start("value") if named else last.end()
    value = (last["value"] or "") if named else text[start:]
    if not (shown := value.strip()):
        return []
    start += value.index(shown)
    return [Span("final", "final", start, start + len(shown), shown)]


def _sentences(text: str) -> Iterator[Span]:
    """A sentence ends with marks before white space; where none follow in its line, with marks of
    Chinese and Japanese; else with the line. It begins with any character, and marks follow it.
    """
    number = base = 0
    for line in text.split("\n"):
        marks = chain(_END.finditer(line), _UNSPACED_END.finditer(line))
        ends = [(match.end("marks"), match.end()) for match in marks]
        place = 0
        for behind_marks, end in [*ends, (len(line) + 2, len(line))]:
            start = place + len(line[place:end]) - len(line[place:end].lstrip())
            if start < end and behind_marks > start + 1:
                number, place, value = number + 1, end, line[start:end].rstrip()
                first = base + start
                yield Span("sentence", f"sentence {number}", first, first + len(value), value)
        base += len(line) + 1


@cache
def _by_form(names: tuple[str, ...]) -> dict[str, str]:
    """The names by their form without case."""
    return {name.casefold(): name for name in names}
