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
    questions, rows = (
        pl.concat(frame.with_columns(task=pl.lit(task)) for task, frame in frames.items())
        for frames in (by_task(tasks, _read_questions), by_task(artefacts, read))
    )
    joined = questions.join(rows, on=["task", "example_id"], how="inner", validate="1:1")
    return joined.sort("task", "example_id")


def _read_questions(path: str) -> pl.DataFrame:
    return read_parquet(path, TASK_COLUMNS).select("example_id", "question")


def labelled(rows: pl.DataFrame, tasks: Sequence[str], labels: Sequence[str]) -> pl.DataFrame:
    """The rows of role 'training', with `group_id` and `correct`.

    Raises `InputError` where one of them is missing, or as `training_rows` does.
    """
    training = training_rows(
        by_task(tasks, lambda path: read_parquet(path, TASK_COLUMNS)),
        by_task(labels, lambda path: read_parquet(path, ["example_id", "correct"])),
    )
    joined = training.join(rows, on=["task", "example_id"], how="inner", validate="1:1")
    if joined.height < training.height:
        raise InputError(
            f"{training.height - joined.height} of {training.height} training examples of "
            f"{', '.join(tasks)} were not answered. Make the traces again with snakemake --force."
        )
    return joined.sort("task", "example_id")


def by_task(paths: Sequence[str], read: Read) -> dict[str, pl.DataFrame]:
    """Each file read, under its task's slug."""
    return {Path(path).stem: read(path) for path in paths}
