"""The traces of an answer's parts, cut from the answer's own."""

import numpy as np
import polars as pl

from tracecal.parts.spans import spans
from tracecal.parts.spec import Parts
from tracecal.parts.tokens import cover, token_places

UNPARSED = "it does not hold the parts in the form that is asked for"
UNSPELLED = "its tokens do not spell it"
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
    of `traces` with the lists cut to its tokens.
    """
    located, without = _located(traces, parts)
    lists = [name for name in PER_TOKEN if name in traces.columns]
    length = pl.col("end") - pl.col("start")
    rows = located.with_columns(traces[located["row"]].drop("answer", "example_id"))
    cut = rows.with_columns(pl.col(lists).list.slice(pl.col("start"), length))
    return cut.select(*CUT, pl.exclude("row", *CUT)), without


def _located(traces: pl.DataFrame, parts: Parts) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The parts' places, and the answers without any and why; `row` is that of `traces`."""
    ids, answers, tokens = traces["example_id"], traces["answer"].fill_null(""), traces["tokens"]
    starts, ends, spelled = token_places(answers, tokens)
    found = [
        spans(text, parts) if fine else None
        for text, fine in zip(answers.to_list(), spelled, strict=True)
    ]
    located = pl.DataFrame(
        [span for of_answer in found for span in of_answer or ()],
        schema=["part", "name", "first", "last", "value"],
        orient="row",
    )
    count = np.array([len(of_answer or ()) for of_answer in found], dtype=np.int64)
    row = np.repeat(np.arange(len(found)), count)
    # All answers are laid end to end, one character apart, so that one search serves all.
    lengths = answers.str.len_chars().to_numpy().astype(np.int64) + 1
    sizes = tokens.list.len().fill_null(0).to_numpy().astype(np.int64)
    base, begun = np.cumsum(lengths) - lengths, np.cumsum(sizes) - sizes
    laid = (np.repeat(base, sizes) + places for places in (starts, ends))
    chars = (located[name].to_numpy() + base[row] for name in ("first", "last"))
    start, end = (places - begun[row] for places in cover(*laid, *chars))
    located = located.with_columns(
        row=row, parent_id=ids.gather(row), start=start, end=end, shared=_shared(row, start, end)
    )
    none = np.flatnonzero(count == 0)
    why = pl.when(spelled.gather(none)).then(pl.lit(UNPARSED)).otherwise(pl.lit(UNSPELLED))
    without = pl.select(example_id=ids.gather(none), why=why)
    return located.cast(CUT), without


def _shared(row: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Whether a span's tokens [start, end) are also another's of its answer; spans are in order."""
    apart = row * (end.max(initial=0) + 1)
    later, before = (start + apart)[1:], np.maximum.accumulate(end + apart)[:-1]
    shared = np.zeros(len(row), dtype=bool)
    shared[1:] = later < before  # than an earlier span's end
    shared[:-1] |= later < (end + apart)[:-1]
    return shared
