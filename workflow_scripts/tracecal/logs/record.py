"""One answer as read from any source: what is known of it, and what is missing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

StopToken = Literal["included", "absent", "none", "unknown"]
Known = Literal["yes", "no", "unknown"]
Reasoning = Literal["none", "apart", "within", "alone"]

FLOATS = pl.List(pl.Float32)  # as in the traces
RECORDS = {
    "example_id": pl.String,
    "prompt": pl.String,
    "prompt_token_ids": pl.List(pl.Int32),
    "answer": pl.String,
    "token_ids": pl.List(pl.Int32),
    "tokens": pl.List(pl.String),
    "surprisal": FLOATS,
    "entropy": FLOATS,
    "entropy_lower": FLOATS,
    "entropy_upper": FLOATS,
    "top_k": pl.Int32,
    "finish_reason": pl.String,
    "stop_token": pl.String,
    "processed": pl.String,
    "reasoning": pl.String,
    "model": pl.String,
    "group_id": pl.String,
    "correct": pl.Boolean,
    "lacks": pl.String,
}


@dataclass(frozen=True, kw_only=True)
class Details:
    """What a row says of its answer besides the trace; null where it says nothing.

    `stop_token` says whether the trace includes the stop token ('none': it ended without one),
    `processed` whether its probabilities are those after temperature, penalties or truncation.
    `reasoning` says whether it precedes the answer, and of which tokens the trace then is: of the
    answer ('apart'), of the reasoning ('alone') or of both ('within'). Answers to variants of one
    question share a `group_id`.
    """

    answer: str | None = None
    prompt: str | None = None
    prompt_token_ids: Sequence[int] | None = None
    token_ids: Sequence[int] | None = None
    tokens: Sequence[str] | None = None
    finish_reason: str | None = None
    stop_token: StopToken = "unknown"
    processed: Known = "unknown"
    reasoning: Reasoning = "none"
    model: str | None = None
    group_id: str | None = None
    correct: bool | None = None


@dataclass(frozen=True)
class Record(Details):
    """One answer and its trace.

    `surprisal` and the entropies have an entry per token, in nats. `entropy` is exact where
    there are no bounds, else their midpoint, from `top_k` tokens at each step; `lacks` says why a
    trace is incomplete.
    """

    example_id: str
    surprisal: Sequence[float] | None = None
    entropy: Sequence[float] | None = None
    entropy_lower: Sequence[float] | None = None
    entropy_upper: Sequence[float] | None = None
    top_k: int | None = None
    lacks: str | None = None


# Whether an answer has exact entropies, the middle of top-k bounds, or none.
ENTROPY_KIND = (
    pl.when(pl.col("entropy").is_null())
    .then(pl.lit("none"))
    .when(pl.col("entropy_upper").is_null())
    .then(pl.lit("exact"))
    .otherwise(pl.lit("top-k"))
)


def entropy_kind(answers: pl.DataFrame) -> str:
    """The `ENTROPY_KIND` of answers (columns of `RECORDS`): top-k where any answer's is."""
    kinds = set(answers.select(ENTROPY_KIND).to_series())
    return next((kind for kind in ("top-k", "exact") if kind in kinds), "none")


def as_frame(records: Iterable[Record]) -> pl.DataFrame:
    """The columns of `RECORDS`, a row per record, in their order."""
    return pl.DataFrame([vars(record) for record in records], schema=RECORDS)
