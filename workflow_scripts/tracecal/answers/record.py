"""Records: answers with their traces, as one row per answer of a frame.

`trace.make_records` makes a `Record` of each answer, and `as_frame` a frame of them, with the
columns `RECORDS`.
The column `also` holds the user's own columns, which a calibrator calls `also.<name>`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from tracecal.answers.raw_answer import Details

FLOATS = pl.List(pl.Float32)  # as in the traces
TRACE = ("surprisal", "entropy", "entropy_lower", "entropy_upper")
ALSO = "also."  # before the name of an own column
# A trace with fewer distinct numbers may equal another question's by chance. Numbers of one or two
# digits do not count: of sure tokens logs with four decimals hold few others.
MIN_DISTINCT_VALUES, MAX_CHANCE_DIGITS = 3, 2
RECORDS = {
    "example_id": pl.String,
    "prompt": pl.String,
    "asked": pl.String,
    "prompt_token_ids": pl.List(pl.Int32),
    "answer": pl.String,
    "token_ids": pl.List(pl.Int32),
    "tokens": pl.List(pl.String),
    "surprisal": FLOATS,
    "entropy": FLOATS,
    "entropy_lower": FLOATS,
    "entropy_upper": FLOATS,
    "top_k": pl.Int32,
    "vocabulary": pl.Int32,
    "finish_reason": pl.String,
    "stop_token": pl.String,
    "processed": pl.String,
    "decoding": pl.String,
    "reasoning": pl.String,
    "model": pl.String,
    "group_id": pl.String,
    "row_task": pl.String,
    "correct": pl.Boolean,
    "unsure": pl.Boolean,
    "asked_for": pl.Boolean,
    "created": pl.Float64,
    "lacks": pl.String,
    "no_answer": pl.String,
    "partial": pl.Struct(dict.fromkeys(TRACE, FLOATS)),
    "also": pl.List(pl.Struct({"name": pl.String, "path": pl.String, "value": pl.Float64})),
}


@dataclass(frozen=True)
class Record(Details):
    """One answer and its trace.

    Attributes
    ----------
    surprisal, entropy, entropy_lower, entropy_upper
        One number per token, in nats. `entropy` is exact without bounds, else their midpoint.
    top_k
        The largest number of tokens listed at a step, where entropies have bounds.
    vocabulary
        The vocabulary's size, which the bounds of entropies assume.
    lacks
        Why the trace is incomplete.
    partial
        The lists of an incomplete trace, None at tokens that lack a value; parts of the answer may
        be complete.
    """

    example_id: str
    surprisal: Sequence[float] | None = None
    entropy: Sequence[float] | None = None
    entropy_lower: Sequence[float] | None = None
    entropy_upper: Sequence[float] | None = None
    top_k: int | None = None
    vocabulary: int | None = None
    lacks: str | None = None
    partial: Mapping[str, Sequence[float | None] | None] | None = None


# The lists of a trace; where they are missing those of `partial`, which have gaps.
PARTIAL_TRACE = [pl.coalesce(name, pl.col("partial").struct.field(name)) for name in TRACE]
# What identifies the question of an answer; None where nothing says what was asked.
QUESTION = pl.coalesce("asked", "prompt")
# Whether an answer has exact entropies, midpoints of top-k bounds, or none.
ENTROPY_KIND = (
    pl.when(pl.col("entropy").is_null())
    .then(pl.lit("none"))
    .when(pl.col("entropy_upper").is_null())
    .then(pl.lit("exact"))
    .otherwise(pl.lit("top-k"))
)


def entropy_kind(answers: pl.DataFrame) -> str:
    """The `ENTROPY_KIND` of answers (columns of `RECORDS`): top-k where one answer's is."""
    kinds = set(answers.select(ENTROPY_KIND).to_series())
    return next((kind for kind in ("top-k", "exact") if kind in kinds), "none")


def own_column(name: str) -> pl.Expr:
    """The value of the own column `name`, missing where the answer has none.

    >>> also = [[{"name": "judge", "path": "judge.score", "value": 0.5}], []]
    >>> pl.DataFrame({"also": also}).select(own_column("judge")).to_series().to_list()
    [0.5, None]
    """
    has_name = pl.element().struct.field("name") == name
    values = pl.element().filter(has_name).struct.field("value")
    return pl.col("also").list.eval(values).list.first()


def own_column_paths(answers: pl.DataFrame) -> dict[str, str]:
    """The paths of the own columns of answers, by their names."""
    columns = answers.select(pl.col("also").explode()).unnest("also").drop_nulls("name")
    return dict(
        columns.unique("name", keep="first", maintain_order=True).select("name", "path").rows()
    )


def as_frame(records: Iterable[Record]) -> pl.DataFrame:
    """Make a frame with the columns of `RECORDS`, a row per record, in their order.

    >>> as_frame([Record("sum", surprisal=[0.25, 0.5])])["surprisal"].to_list()
    [[0.25, 0.5]]
    """
    rows = [*records]
    columns = [_array([getattr(row, name) for row in rows], kind) for name, kind in RECORDS.items()]
    return pl.DataFrame(pa.RecordBatch.from_arrays(columns, [*RECORDS]))


def _array(values: Sequence[Any], kind: Any) -> pa.Array:
    """Values as an array of Arrow: lists from Arrow cost Polars a tenth of lists from Python.

    `pa.array` would load pandas where it is installed, and masks and tables `pyarrow.compute`.
    """
    if not isinstance(kind, pl.List | pl.Struct):
        return pl.Series(values, dtype=kind).to_arrow()
    is_present = np.array([value is not None for value in values], dtype=bool)
    buffers = [pa.py_buffer(np.packbits(is_present, bitorder="little"))]
    if isinstance(kind, pl.List):
        lists = [() if value is None else value for value in values]
        entries = _array([*chain.from_iterable(lists)], kind.inner)
        buffers.append(pa.py_buffer(np.cumsum([0, *map(len, lists)])))
        return pa.Array.from_buffers(
            pa.large_list(entries.type), len(values), buffers, children=[entries]
        )
    fields = {
        field.name: _array([value and value.get(field.name) for value in values], field.dtype)
        for field in kind.fields
    }
    struct = pa.struct([(name, field.type) for name, field in fields.items()])
    return pa.Array.from_buffers(struct, len(values), buffers, children=[*fields.values()])


def without_blanks(text: str) -> str:
    """A text without blanks at its ends and before the ends of its lines."""
    return "\n".join(map(str.rstrip, text.strip().split("\n")))


def has_distinctive_trace(answers: pl.DataFrame) -> pl.Series:
    """Find the answers with traces that cannot be equal by chance, bool [n].

    >>> traces = {"surprisal": [[0.0, 1e-4, 2e-4], [0.1234, 1.01, 2.345]], "entropy": [None] * 2}
    >>> has_distinctive_trace(pl.DataFrame(traces)).to_list()
    [False, True]
    """
    lists = pl.col("surprisal", "entropy").cast(FLOATS).fill_null([])
    numbers = pl.concat_list(lists).list.eval(
        pl.element().filter(pl.element() != pl.element().round_sig_figs(MAX_CHANCE_DIGITS))
    )
    is_distinctive = numbers.list.n_unique() >= MIN_DISTINCT_VALUES
    return answers.select(distinctive=is_distinctive).to_series()
