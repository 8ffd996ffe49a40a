"""Where the parts of an answer stand in its text."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.parts.documents import documents, found, steps
from tracecal.parts.spec import LINE, MARKS, Parts

# The columns of spans of many answers; `row` is the number of a span's answer.
PLACES = {
    "row": pl.Int64,
    "part": pl.String,
    "name": pl.String,
    "first": pl.Int64,
    "last": pl.Int64,
    "value": pl.String,
}
# White space as `str.strip` and \s know it; that of Polars lacks \x1c to \x1f.
_SPACE = "".join(filter(str.isspace, map(chr, range(sys.maxunicode + 1))))
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
            for name, node in found(document, _steps(path))
        ]
        if values:
            return values
    return []


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
