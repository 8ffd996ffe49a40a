"""The parts of an answer: where they stand in its text, which tokens spell them, their traces."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from tracecal.answers.part_spec import LINE, MARKS, Parts, documents, found, steps
from tracecal.io.input_files import matches, searcher

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


# Which tokens spell which characters of an answer.


def token_places(answers: pl.Series, tokens: pl.Series) -> tuple[np.ndarray, np.ndarray, pl.Series]:
    """The answer's characters before each token and through it, and which answers these spell.

    The first two hold all answers' tokens [tokens], of an answer whose tokens do not spell it
    zeros; the last is a mask [answers]. Tokens may spell more than their answer: special ones, and
    white space around it, which servers strip. A token without text, a special one or one that
    only begins a character, stands where the next character does.
    """
    joined = tokens.list.join("")
    # Of all answers at once; what remains, in the second step.
    spelled = joined.str.starts_with(answers).fill_null(False)
    sizes = tokens.list.len().fill_null(0).to_numpy().astype(np.int64)
    flat = tokens.explode(empty_as_null=False, keep_nulls=False)
    lengths = flat.str.len_chars().to_numpy().astype(np.int64)
    first = np.cumsum(sizes) - sizes
    mask = spelled.to_numpy().copy()
    skipped = np.zeros(len(sizes), np.int64)
    for row in np.flatnonzero(~mask & (sizes > 0)):
        answer, text = answers[int(row)] or "", joined[int(row)]
        own = slice(first[row], first[row] + sizes[row])
        if answer and answer == text.strip():
            skipped[row], mask[row] = len(text) - len(text.lstrip()), True
        elif (kept := _without_special(answer, flat[own].to_list())) is not None:
            lengths[own], mask[row] = kept, True
    total = np.cumsum(lengths)
    before = np.append(0, total)[first]  # characters of the answers before
    ends = total - np.repeat(before + skipped, sizes)
    most = np.repeat(np.where(mask, answers.str.len_chars().fill_null(0).to_numpy(), 0), sizes)
    return np.clip(ends - lengths, 0, most), np.clip(ends, 0, most), pl.Series(mask)


def _without_special(answer: str, tokens: Sequence[str]) -> list[int] | None:
    """How many characters each token adds to the answer, where others than the last are special."""
    place, added = 0, []
    for token in tokens:
        added.append(len(token) if answer.startswith(token, place) else 0)
        place += added[-1]
    return added if place == len(answer) else None


def cover(
    starts: np.ndarray, ends: np.ndarray, first: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The tokens [start, end) that spell the characters [first, last), of many spans at once.

    `starts` and `ends` [tokens] are the characters before and through each token, not decreasing. A
    token without text at a span's first character belongs to it: it begins that character.
    """
    start = np.minimum(
        np.searchsorted(starts, first, "left"), np.searchsorted(ends, first, "right")
    )
    return start, np.searchsorted(starts, last, "left")


# The traces of an answer's parts, cut from the answer's own.


UNPARSED = "it does not hold the parts in the form that is asked for"
UNSPELLED = "its tokens do not spell it"
NO_REASONING = "no reasoning stands before its conclusion"
BATCH = 50_000  # answers; of a million the columns would not stay in a core's caches
# Lists with an entry per token
PER_TOKEN = ("token_ids", "tokens", "surprisal", "entropy", "entropy_lower", "entropy_upper")
CUT = {
    "parent_id": pl.String,
    "part": pl.String,
    "name": pl.String,
    "value": pl.String,
    "first": pl.Int32,
    "last": pl.Int32,
    "start": pl.Int32,
    "end": pl.Int32,
    "shared": pl.Boolean,
}


def cut(traces: pl.DataFrame, parts: Parts) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The parts that answers have, and the answers that have none, with the reason.

    `traces` has `example_id`, `answer`, `tokens` and lists with an entry per token. A part's row
    has `parent_id`, `part`, `name`, `value`, its characters [first, last) and tokens [start, end)
    in the answer, whether one of its tokens is `shared` with another part, and the other columns
    of `traces` with the lists cut to its tokens. The tokens of a conclusion are, where
    `parts.reasoning` says so, those of the reasoning before it or of both.
    """
    firsts = range(0, max(traces.height, 1), BATCH)
    batches = [_cut(traces.slice(first, BATCH), parts) for first in firsts]
    cut, without = zip(*batches, strict=True)
    return pl.concat(cut), pl.concat(without)


def _cut(traces: pl.DataFrame, parts: Parts) -> tuple[pl.DataFrame, pl.DataFrame]:
    located, without = _located(traces, parts)
    lists = [name for name in PER_TOKEN if name in traces.columns]
    row, start, end = (
        located[name].to_numpy().astype(np.int64) for name in ("row", "start", "end")
    )
    rows = traces.drop("answer", "example_id", *lists)[row]
    cut = [_sliced(traces[name], row, start, end) for name in lists]
    columns = [*CUT, *(name for name in traces.columns if name not in ("answer", "example_id"))]
    return pl.concat([located, rows, pl.DataFrame(cut)], how="horizontal").select(columns), without


def _sliced(lists: pl.Series, row: np.ndarray, start: np.ndarray, end: np.ndarray) -> pl.Series:
    """The entries [start, end) of the lists of `row`; null where the list is.

    As `gather` and `list.slice` do, without whole lists for each part.
    """
    sizes = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
    none = lists.is_null().to_numpy()[row]
    length = np.where(none, 0, end - start)
    through = np.append(0, np.cumsum(length))
    begin = (np.cumsum(sizes) - sizes)[row] + start - through[:-1]
    entries = lists.explode(empty_as_null=False, keep_nulls=False).gather(
        np.repeat(begin, length) + np.arange(through[-1])
    )
    cut = pa.LargeListArray.from_arrays(through, entries.to_arrow(), mask=pa.array(none))
    return pl.Series(lists.name, cut)


def _located(traces: pl.DataFrame, parts: Parts) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The parts' places, and the answers without any and why; `row` is that of `traces`."""
    ids, answers, tokens = traces["example_id"], traces["answer"].fill_null(""), traces["tokens"]
    starts, ends, spelled = token_places(answers, tokens)
    text = pl.select(pl.when(spelled).then(answers).otherwise(pl.lit(""))).to_series()
    located = places(text, parts)
    row = located["row"].to_numpy()
    # All answers are laid end to end, one character apart, so that one search serves all.
    lengths = answers.str.len_chars().to_numpy().astype(np.int64) + 1
    sizes = tokens.list.len().fill_null(0).to_numpy().astype(np.int64)
    base, begun = np.cumsum(lengths) - lengths, np.cumsum(sizes) - sizes
    laid = (np.repeat(base, sizes) + own for own in (starts, ends))
    chars = (located[name].to_numpy() + base[row] for name in ("first", "last"))
    start, end = (token - begun[row] for token in cover(*laid, *chars))
    if parts.reasoning != "apart":
        start, end = np.zeros_like(start), start if parts.reasoning == "alone" else end
    located = located.with_columns(
        parent_id=ids.gather(row), start=start, end=end, shared=_shared(row, start, end)
    )
    which = spelled.to_numpy().astype(np.int64)
    which[row] = np.where(start < end, 3, 2)
    why = pl.Series([UNSPELLED, UNPARSED, NO_REASONING, None]).gather(which)
    without = pl.DataFrame({"example_id": ids, "why": why}).drop_nulls()
    return located.filter(pl.col("start") < pl.col("end")).cast(CUT), without


def _shared(row: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Whether a span's tokens [start, end) are also another's of its answer; spans are in order."""
    apart = row * (end.max(initial=0) + 1)
    later, before = (start + apart)[1:], np.maximum.accumulate(end + apart)[:-1]
    shared = np.zeros(len(row), dtype=bool)
    shared[1:] = later < before  # than an earlier span's end
    shared[:-1] |= later < (end + apart)[:-1]
    return shared
