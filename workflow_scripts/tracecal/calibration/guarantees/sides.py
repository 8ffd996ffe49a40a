"""Which labelled answers test thresholds: one of each question, on four fifths of the questions.

`place_answers` decides by a hash of each answer's question, text and trace, so that neither a name,
a seed nor the order of rows matters. The hash is BLAKE2b with a digest of 8 bytes, read as a
big-endian number, over

1. the length in bytes (8 bytes, little-endian) and the UTF-8 of the question, without blanks at its
   ends and before the ends of lines; of an unknown question as of an empty one;
2. the same of the answer;
3. the surprisals as 32-bit floats, little-endian;
4. where the answers of several questions are equal in all of that: the same of the id.
"""

import hashlib
from typing import Literal

import numpy as np
import polars as pl

from tracecal.answers.record import QUESTION, without_blanks

Side = Literal["fit", "test"]
FIT_SHARE = 0.2
MIN_FITTED = 100  # with fewer groups all labelled answers test, and no label fits a ranking


def place_answers(answers: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Order answers by content, and choose which of them test.

    The answers of a group are on one side, by its smallest hash. The hash of the first of several
    is hashed once more, as the smallest of several is smaller than that of a single answer.

    Parameters
    ----------
    answers : polars.DataFrame
        `example_id`, the question (`QUESTION`; None: unknown), `answer` and `surprisal` (None:
        without a trace). Parts of answers name theirs in `parent_id`.
    groups : polars.DataFrame
        `example_id` and `group_id`, as `group_answers` returns them.

    Returns
    -------
    polars.DataFrame
        `example_id`; `rank`, the place of the group in an order that is random but fixed by its
        answers; `represents`: whether the answer, or the answer that a part is of, is the one of
        its group with the smallest hash; and `side` ('fit' or 'test'). Sorted by `rank` and hash.

    Examples
    --------
    >>> ids = ["a", "b", "c"]
    >>> answers = pl.DataFrame({"example_id": ids, "answer": "yes", "surprisal": [[0.5]] * 3})
    >>> groups = pl.DataFrame({"example_id": ids, "group_id": ["a", "a", "c"]})
    >>> unknown = pl.lit(None, pl.String)
    >>> place_answers(answers.with_columns(asked=unknown, prompt=unknown), groups)["rank"].to_list()
    [0, 1, 1]
    """
    whole = "parent_id" if "parent_id" in answers.columns else "example_id"
    rows = groups.select("example_id", "group_id").join(
        answers.select("example_id", whole=whole, hash=_hashes(answers, groups)), on="example_id"
    )
    wholes = _smallest(rows, "group_id", "whole").sort("hash", "whole")
    first = wholes.unique("group_id", keep="first", maintain_order=True)
    questions = _smallest(wholes, "group_id").with_columns(
        rank=pl.col("hash").rank("dense").cast(pl.Int64) - 1,
        side=pl.when(pl.col("hash") < int(FIT_SHARE * 2**64))
        .then(pl.lit("fit"))
        .otherwise(pl.lit("test")),
    )
    return (
        rows.join(questions.drop("hash"), on="group_id")
        .join(
            first.select("group_id", "whole", represents=True), on=["group_id", "whole"], how="left"
        )
        .sort("rank", "hash", "example_id")
        .select("example_id", "rank", "side", represents=pl.col("represents").fill_null(False))
    )


def _smallest(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """The smallest `hash` of the rows with the same keys, hashed once more where several differ."""
    smallest = rows.group_by(keys).agg(pl.col("hash").min(), several=pl.col("hash").n_unique() > 1)
    hashes = [
        _digest(value.to_bytes(8, "little")) if several else value
        for value, several in smallest.select("hash", "several").iter_rows()
    ]
    return smallest.select(*keys, hash=pl.Series(hashes, dtype=pl.UInt64))


def _hashes(answers: pl.DataFrame, groups: pl.DataFrame) -> pl.Series:
    """The hash of each answer, which its id enters where another group has an equal answer."""
    contents = [
        _content(*row) for row in answers.select(QUESTION, "answer", "surprisal").iter_rows()
    ]
    rows = answers.select("example_id", content=pl.Series(contents, dtype=pl.Binary)).join(
        groups, on="example_id", how="left", maintain_order="left"
    )
    is_shared = pl.col("group_id").n_unique().over("content") > 1
    hashes = [
        _digest(content + _sized(example_id) if shared else content)
        for content, example_id, shared in rows.select(
            "content", "example_id", is_shared
        ).iter_rows()
    ]
    return pl.Series(hashes, dtype=pl.UInt64)


def _content(question: str | None, answer: str | None, surprisal: list[float] | None) -> bytes:
    trace = b"" if surprisal is None else np.asarray(surprisal, dtype="<f4").tobytes()
    return _sized(without_blanks(question or "")) + _sized(without_blanks(answer or "")) + trace


def _sized(text: str) -> bytes:
    content = text.encode()
    return len(content).to_bytes(8, "little") + content


def _digest(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")
