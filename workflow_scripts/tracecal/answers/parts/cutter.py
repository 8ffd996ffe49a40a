"""The traces of parts, cut from the traces of their answers."""

import numpy as np
import polars as pl
import pyarrow as pa

from tracecal.answers.parts.parts import Parts
from tracecal.answers.parts.spans import places
from tracecal.answers.parts.tokens import cover, token_places

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
