"""One artefact of several (model, task) pairs as one frame."""

from collections.abc import Sequence

import polars as pl

from tracecal.files import read_parquet


def read_pairs(
    paths: Sequence[str], pairs: Sequence[Sequence[str]], columns: Sequence[str]
) -> pl.DataFrame:
    """`model`, `task` and `columns` of the file of each pair, in the order given.

    `paths` and `pairs` go together, one by one. Raises `InputError` where a file is unreadable
    or lacks a column.
    """
    return pl.concat(
        read_parquet(path, columns).select(
            pl.lit(model).alias("model"), pl.lit(task).alias("task"), *columns
        )
        for path, (model, task) in zip(paths, pairs, strict=True)
    )
