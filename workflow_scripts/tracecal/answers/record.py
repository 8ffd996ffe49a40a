"""Records: answers with their traces, as one row per answer of a frame.

`trace.make_records` makes a `Record` of each answer, and `row.as_frame` a frame of them, with
the columns `RECORDS`.
The column `also` holds the user's own columns, which a calibrator calls `also.<name>`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from tracecal.answers.raw_answer import Details

FLOATS = pl.List(pl.Float32)  # as in the traces
TRACE = ("surprisal", "entropy", "entropy_lower", "entropy_upper")
ALSO = "also."  # before the name of an own column
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


def own_column(name: str) -> pl.Expr:
    """The value of the own column `name`, missing where the answer has none.

    >>> also = [[{"name": "judge", "path": "judge.score", "value": 0.5}], []]
    >>> pl.DataFrame({"also": also}).select(own_column("judge")).to_series().to_list()
    [0.5, None]
    """
    has_name = pl.element().struct.field("name") == name
    values = pl.element().filter(has_name).struct.field("value")
    return pl.col("also").list.eval(values).list.first()
