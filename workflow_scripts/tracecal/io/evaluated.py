"""The evaluated examples of a task, with the role 'evaluation'."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from tracecal.errors import InputError
from tracecal.io.files import read_parquet


def evaluation_ids(task: str | Path, columns: Sequence[str] = ()) -> pl.DataFrame:
    """`example_id` and `columns` of the evaluation rows of a task file, sorted."""
    rows = read_parquet(task, ["example_id", "role", *columns])
    return rows.filter(role="evaluation").select("example_id", *columns).sort("example_id")


def evaluated(frame: pl.DataFrame, task: str | Path, columns: Sequence[str] = ()) -> pl.DataFrame:
    """The rows of `frame` for the evaluated examples, sorted; exactly one per example.

    They get the `columns` of the task too. Raises `InputError` where an example has no row, or
    several.
    """
    ids = evaluation_ids(task, columns)
    rows = ids.join(frame, on="example_id", how="inner", maintain_order="left")
    if not rows["example_id"].equals(ids["example_id"]):
        raise InputError(
            f"the answers do not match the evaluated examples of {task}: {rows.height} rows for "
            f"{ids.height} examples. Recreate them with snakemake --force."
        )
    return rows
