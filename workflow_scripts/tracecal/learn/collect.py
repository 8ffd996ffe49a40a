"""One model's answers on all its tasks, and the labelled ones to train on."""

from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

from tracecal.errors import InputError
from tracecal.learn.rows import TASK_COLUMNS, training_rows
from tracecal.storage.files import read_parquet

Read = Callable[[str], pl.DataFrame]


def all_rows(tasks: Sequence[str], artefacts: Sequence[str], read: Read) -> pl.DataFrame:
    """`task`, `question` and the columns that `read` returns, for every answer of both roles.

    `tasks` and `artefacts` hold one file per task, named `<task>.<kind>`.
    """
    questions = _read_all(tasks, _reader(TASK_COLUMNS)).select("example_id", "question", "task")
    rows = _read_all(artefacts, read)
    joined = questions.join(rows, on=["task", "example_id"], how="inner", validate="1:1")
    return joined.sort("task", "example_id")


def labelled(rows: pl.DataFrame, tasks: Sequence[str], labels: Sequence[str]) -> pl.DataFrame:
    """The rows of role 'training', with `group_id` and `correct`.

    Raises `InputError` where one of them is missing, or as `training_rows` does.
    """
    training = training_rows(
        _read_all(tasks, _reader(TASK_COLUMNS)),
        _read_all(labels, _reader(["example_id", "correct"])),
    )
    joined = training.join(rows, on=["task", "example_id"], how="inner", validate="1:1")
    if joined.height < training.height:
        raise InputError(
            f"{training.height - joined.height} of {training.height} training examples of "
            f"{', '.join(tasks)} were not answered. Recreate the traces with snakemake --force."
        )
    return joined.sort("task", "example_id")


def _reader(columns: list[str]) -> Read:
    return lambda path: read_parquet(path, columns).select(columns)


def _read_all(paths: Sequence[str], read: Read) -> pl.DataFrame:
    """The rows of all files, with the slug of their `task`."""
    return pl.concat(read(path).with_columns(task=pl.lit(Path(path).stem)) for path in paths)
