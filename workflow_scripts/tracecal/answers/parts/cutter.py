"""The one cutter of parts: it cuts the traces of answers into the traces of their parts.

`cut_parts(traces, parts)` serves files of answers (`answers.parts.part_answers`) and runs (the rule
`cut_parts`). `_token_characters` places all tokens of many answers, and `_covering_tokens` finds
those of spans.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from tracecal.answers.parts.parts import Parts
from tracecal.answers.parts.spans import locate_spans

UNPARSED = "it does not hold the parts in the form that is asked for"
UNSPELLED = "its tokens do not spell it"
NO_REASONING = "no reasoning stands before its conclusion"
BATCH = 50_000  # answers; the columns of a million would not stay in the caches of a core
# Lists with an entry per token.
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


def cut_parts(traces: pl.DataFrame, parts: Parts) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cut traces into the traces of parts.

    Parameters
    ----------
    traces
        `example_id`, `answer`, `tokens` and lists with an entry per token.
    parts
        Which parts there are. Where `parts.reasoning` says so, the tokens of a conclusion are those
        of the reasoning before it, or of both.

    Returns
    -------
    cut
        A row per part: its `parent_id`, `part`, `name` and `value`, its characters [first, last)
        and tokens [start, end) in the answer, whether one of its tokens is `shared` with another
        part, and the other columns of `traces` with the lists cut to its tokens.
    without
        The answers without parts: `example_id` and `why`.
    """
    firsts = range(0, max(traces.height, 1), BATCH)
    batches = [_cut_batch(traces.slice(first, BATCH), parts) for first in firsts]
    cut, without = zip(*batches, strict=True)
    return pl.concat(cut), pl.concat(without)


def _cut_batch(traces: pl.DataFrame, parts: Parts) -> tuple[pl.DataFrame, pl.DataFrame]:
    located, without = _locate_parts(traces, parts)
    lists = [name for name in PER_TOKEN if name in traces.columns]
    row, start, end = (
        located[name].to_numpy().astype(np.int64) for name in ("row", "start", "end")
    )
    rows = traces.drop("answer", "example_id", *lists)[row]
    slices = pl.DataFrame([_slice_lists(traces[name], row, start, end) for name in lists])
    columns = [*CUT, *(name for name in traces.columns if name not in ("answer", "example_id"))]
    return pl.concat([located, rows, slices], how="horizontal").select(columns), without


def _slice_lists(
    lists: pl.Series, row: np.ndarray, start: np.ndarray, end: np.ndarray
) -> pl.Series:
    """The entries [start, end) of the lists of `row`; missing where the list is.

    As `gather` and `list.slice` do, without a copy of the list for each part.
    """
    sizes = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
    is_null = lists.is_null().to_numpy()[row]
    length = np.where(is_null, 0, end - start)
    through = np.append(0, np.cumsum(length))
    begin = (np.cumsum(sizes) - sizes)[row] + start - through[:-1]
    entries = lists.explode(empty_as_null=False, keep_nulls=False).gather(
        np.repeat(begin, length) + np.arange(through[-1])
    )
    ends, mask = pl.Series(through).to_arrow(), pl.Series(is_null).to_arrow()
    slices = pa.LargeListArray.from_arrays(ends, entries.to_arrow(), mask=mask)
    return pl.Series(lists.name, slices)


def _locate_parts(traces: pl.DataFrame, parts: Parts) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The places of the parts, and the answers without any and why; `row` is that of `traces`."""
    ids, answers, tokens = traces["example_id"], traces["answer"].fill_null(""), traces["tokens"]
    starts, ends, is_spelled = _token_characters(answers, tokens)
    text = pl.select(pl.when(is_spelled).then(answers).otherwise(pl.lit(""))).to_series()
    located = locate_spans(text, parts)
    row = located["row"].to_numpy()
    # All answers are laid end to end, one character apart, so that one search serves all.
    lengths = answers.str.len_chars().to_numpy().astype(np.int64) + 1
    sizes = tokens.list.len().fill_null(0).to_numpy().astype(np.int64)
    first_char, first_token = np.cumsum(lengths) - lengths, np.cumsum(sizes) - sizes
    token_chars = (np.repeat(first_char, sizes) + chars for chars in (starts, ends))
    span_chars = (located[name].to_numpy() + first_char[row] for name in ("first", "last"))
    start, end = (token - first_token[row] for token in _covering_tokens(*token_chars, *span_chars))
    if parts.reasoning != "apart":
        start, end = np.zeros_like(start), start if parts.reasoning == "alone" else end
    located = located.with_columns(
        parent_id=ids.gather(row), start=start, end=end, shared=_is_shared(row, start, end)
    )
    reason = is_spelled.to_numpy().astype(np.int64)
    reason[row] = np.where(start < end, 3, 2)
    why = pl.Series([UNSPELLED, UNPARSED, NO_REASONING, None]).gather(reason)
    without = pl.DataFrame({"example_id": ids, "why": why}).drop_nulls()
    return located.filter(pl.col("start") < pl.col("end")).cast(CUT), without


def _is_shared(row: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Whether another span of the answer has one of the tokens [start, end); spans are in order."""
    offset = row * (end.max(initial=0) + 1)  # keeps the tokens of different answers apart
    next_start, latest_end = (start + offset)[1:], np.maximum.accumulate(end + offset)[:-1]
    shared = np.zeros(len(row), dtype=bool)
    shared[1:] = next_start < latest_end
    shared[:-1] |= next_start < (end + offset)[:-1]
    return shared


def _token_characters(
    answers: pl.Series, tokens: pl.Series
) -> tuple[np.ndarray, np.ndarray, pl.Series]:
    """The characters of the answer before each token and through it, and which answers are spelled.

    The first two hold the tokens of all answers [tokens], zeros for an answer that its tokens do
    not spell; the last is a mask [answers]. Tokens may spell more than their answer: special ones,
    and white space around it, which servers strip. A token without text, a special one or one that
    only begins a character, stands where the next character does.

    >>> _token_characters(pl.Series(["Lima"]), pl.Series([["Li", "ma"]]))[:2]
    (array([0, 2]), array([2, 4]))
    """
    joined = tokens.list.join("")
    # Of all answers at once; the second step does what remains.
    is_spelled = joined.str.starts_with(answers).fill_null(False)
    sizes = tokens.list.len().fill_null(0).to_numpy().astype(np.int64)
    flat = tokens.explode(empty_as_null=False, keep_nulls=False)
    lengths = flat.str.len_chars().to_numpy().astype(np.int64)
    first = np.cumsum(sizes) - sizes
    mask = is_spelled.to_numpy().copy()
    n_skipped = np.zeros(len(sizes), np.int64)
    for row in np.flatnonzero(~mask & (sizes > 0)):
        answer, text = answers[int(row)] or "", joined[int(row)]
        row_tokens = slice(first[row], first[row] + sizes[row])
        if answer and answer == text.strip():
            n_skipped[row], mask[row] = len(text) - len(text.lstrip()), True
        elif (without := _lengths_without_special(answer, flat[row_tokens].to_list())) is not None:
            lengths[row_tokens], mask[row] = without, True
    total = np.cumsum(lengths)
    before = np.append(0, total)[first]  # characters of the answers before
    ends = total - np.repeat(before + n_skipped, sizes)
    size = np.where(mask, answers.str.len_chars().fill_null(0).to_numpy(), 0)
    size = np.repeat(size, sizes)
    return np.clip(ends - lengths, 0, size), np.clip(ends, 0, size), pl.Series(mask)


def _lengths_without_special(answer: str, tokens: Sequence[str]) -> list[int] | None:
    """How many characters each token adds to the answer, if all that add none are special."""
    position, lengths = 0, []
    for token in tokens:
        lengths.append(len(token) if answer.startswith(token, position) else 0)
        position += lengths[-1]
    return lengths if position == len(answer) else None


def _covering_tokens(
    starts: np.ndarray, ends: np.ndarray, first: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The tokens [start, end) that spell the characters [first, last), of many spans at once.

    `starts` and `ends` [tokens] are the characters before and through each token, not decreasing. A
    token without text at the first character of a span belongs to it: it begins that character.
    """
    start = np.minimum(
        np.searchsorted(starts, first, "left"), np.searchsorted(ends, first, "right")
    )
    return start, np.searchsorted(starts, last, "left")
