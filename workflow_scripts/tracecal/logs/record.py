"""One answer as read from any source: what is known of it, and what is missing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

StopToken = Literal["included", "absent", "none", "unknown"]
Known = Literal["yes", "no", "unknown"]

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
    "finish_reason": pl.String,
    "stop_token": pl.String,
    "processed": pl.String,
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
    Answers to variants of one question share a `group_id`.
    """

    answer: str | None = None
    prompt: str | None = None
    prompt_token_ids: Sequence[int] | None = None
    token_ids: Sequence[int] | None = None
    tokens: Sequence[str] | None = None
    finish_reason: str | None = None
    stop_token: StopToken = "unknown"
    processed: Known = "unknown"
    model: str | None = None
    group_id: str | None = None
    correct: bool | None = None


@dataclass(frozen=True)
class Record(Details):
    """One answer and its trace.

    `surprisal` and the entropies have an entry per token, in nats. `entropy` is exact where
    there are no bounds, else their midpoint; `lacks` says why a trace is incomplete.
    """

    example_id: str
    surprisal: Sequence[float] | None = None
    entropy: Sequence[float] | None = None
    entropy_lower: Sequence[float] | None = None
    entropy_upper: Sequence[float] | None = None
    lacks: str | None = None


def entropy_kind(answers: pl.DataFrame) -> str:
    """Whether answers (columns of `RECORDS`) have exact entropies, top-k bounds or none."""
    if answers["entropy"].is_null().all():
        return "none"
    return "top-k" if answers["entropy_upper"].is_not_null().any() else "exact"


def as_frame(records: Iterable[Record]) -> pl.DataFrame:
    """The columns of `RECORDS`, a row per record, sorted by `example_id`."""
    rows = [vars(record) for record in records]
    return pl.DataFrame(rows, schema=RECORDS).sort("example_id")
