"""The side of an answer: a fifth of the labelled answers fits the ranking, the others test it.

`assign_sides` decides by a hash of each answer's question, text, trace and id, so that neither a
name, a seed nor the order of rows matters, and an answer keeps its side when labels are added.
"""

import hashlib
from typing import Literal

import numpy as np
import polars as pl

Side = Literal["fit", "test"]
FIT_SHARE = 0.2
MIN_FITTED = 100  # with fewer groups all labelled answers test, and no label fits a ranking
SIDE_COLUMNS = ("example_id", "prompt", "answer", "surprisal")


def assign_sides(answers: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Return `example_id`, `group_id`, `order` (UInt64) and `side` ('fit' or 'test') of answers.

    A group is on one side as a whole, by the smallest hash of its answers. `order` is the group's
    place in an order that is random but fixed by the answers: the first groups are those to test
    where there are too many.

    Parameters
    ----------
    answers : polars.DataFrame
        `example_id`, `prompt` (None: unknown), `answer` and `surprisal` (None: without a trace).
    groups : polars.DataFrame
        `example_id` and `group_id`, as `group_answers` returns them.

    Examples
    --------
    >>> ids = ["a", "b", "c"]
    >>> answers = pl.DataFrame({"example_id": ids, "answer": "yes", "surprisal": [[0.5]] * 3})
    >>> groups = pl.DataFrame({"example_id": ids, "group_id": ["a", "a", "c"]})
    >>> assign_sides(answers.with_columns(prompt=None), groups)["side"].to_list()
    ['test', 'test', 'test']
    """
    hashes = pl.DataFrame(
        {
            "example_id": answers["example_id"],
            "hash": [_hash(*row) for row in answers.select(SIDE_COLUMNS).iter_rows()],
        },
        schema_overrides={"hash": pl.UInt64},
    )
    rows = groups.join(hashes, on="example_id", validate="1:1", maintain_order="left")
    smallest = rows.group_by("group_id").agg(pl.col("hash").min())
    # Hashed once more: a group's smallest hash would be smaller than a single answer's.
    order = [_digest(value.to_bytes(8)) for value in smallest["hash"]]
    smallest = smallest.with_columns(order=pl.Series(order, dtype=pl.UInt64))
    rows = rows.join(smallest, on="group_id", maintain_order="left")
    fits = pl.col("order") < int(FIT_SHARE * 2**64)
    side = pl.when(fits).then(pl.lit("fit")).otherwise(pl.lit("test"))
    return rows.select("example_id", "group_id", "order", side=side)


def _hash(example_id: str, prompt: str | None, answer: str | None, surprisal: list | None) -> int:
    trace = b"" if surprisal is None else np.asarray(surprisal, dtype=np.float32).tobytes()
    texts = [text.encode() for text in (prompt or "", answer or "", example_id)]
    return _digest(b"".join(len(part).to_bytes(8) + part for part in (*texts, trace)))


def _digest(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest())
