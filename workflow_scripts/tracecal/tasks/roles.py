"""Which examples of a task are evaluated."""

from pathlib import Path

import polars as pl

from tracecal.errors import InputError
from tracecal.storage.files import read_parquet


def evaluation_ids(task: str | Path) -> pl.DataFrame:
    """`example_id` of the evaluation rows of a task file, sorted."""
    rows = read_parquet(task, ["example_id", "role"])
    return rows.filter(role="evaluation").select("example_id").sort("example_id")


def evaluated(frame: pl.DataFrame, task: str | Path) -> pl.DataFrame:
    """The rows of `frame` whose `example_id` is evaluated, sorted; exactly one per example.

    Raises `InputError` where an evaluated example has no row, or several.
    """
    ids = evaluation_ids(task)
    rows = ids.join(frame, on="example_id", how="inner", maintain_order="left")
    if not rows["example_id"].equals(ids["example_id"]):
        raise InputError(
            f"the answers do not match the evaluated examples of {task}: {rows.height} rows for "
            f"{ids.height} examples. Make them anew with snakemake --force."
        )
    return rows
