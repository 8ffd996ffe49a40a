"""The labelled answers that train a supervised estimator, separate from the evaluated ones."""

from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

from tracecal.errors import InputError
from tracecal.io.files import read_parquet

TASK_COLUMNS = ["example_id", "group_id", "role", "question", "context"]
# What makes two rows the same example. An id is unique within its task only. A group other than the
# example's id was declared, and may span tasks, as translations do.
SAME_EXAMPLE = {
    "id": ["task", "example_id"],
    "group": ["task", "group_id"],
    "declared group": ["declared"],
    "question and context": ["content"],
}


def training_rows(tasks: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """`task`, `example_id`, `group_id` and `correct` of every row of role 'training'.

    `tasks` and `labels` hold the rows of all of one model's tasks, with their `task`. Labels of
    other roles are dropped here. Raises `InputError` where an evaluated example of any task is
    among the rows, where a row has no label, and where there are no rows.
    """
    rows = _marked(tasks)
    training = rows.filter(role="training")
    refuse_leaks(training, rows.filter(role="evaluation"))
    if training.is_empty():
        names = ", ".join(tasks["task"].unique().sort())
        raise InputError(
            f"no task of {names} has rows of role 'training'; give one 'training_split' and "
            "'training_limit', or leave supervised estimators out."
        )
    labelled = training.join(labels, on=["task", "example_id"], how="left", validate="1:1")
    if (unlabelled := labelled.filter(pl.col("correct").is_null())).height:
        raise InputError(
            f"training example {unlabelled['example_id'][0]!r} of {unlabelled['task'][0]} has no "
            "label: labels and tasks do not match. Recreate them with snakemake --force."
        )
    return labelled.select("task", "example_id", "group_id", "correct").sort("task", "example_id")


def refuse_leaks(training: pl.DataFrame, evaluation: pl.DataFrame) -> None:
    """Raise `InputError` where a training row is an evaluated example or a variant of one."""
    for what, columns in SAME_EXAMPLE.items():
        evaluated = evaluation.select(columns).drop_nulls()
        if (leaked := training.join(evaluated, on=columns, how="semi")).height:
            raise InputError(
                f"{leaked.height} training row(s), such as {leaked['example_id'][0]!r} of "
                f"{leaked['task'][0]}, share {what} with an evaluated example: a supervised "
                "estimator would be measured on what it was trained on. Remove them from the "
                "task's training split."
            )


def _marked(rows: pl.DataFrame) -> pl.DataFrame:
    """Task rows with what identifies an example: its `content` and `declared` group."""
    text = pl.concat_str("question", pl.lit("\n"), pl.col("context").fill_null(""))
    return rows.select(
        *("task", "example_id", "group_id", "role"),
        content=text.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars(),
        declared=pl.when(pl.col("group_id") != pl.col("example_id")).then("group_id"),
    )


Read = Callable[[str], pl.DataFrame]


def all_rows(tasks: Sequence[str], artefacts: Sequence[str], reader: Read) -> pl.DataFrame:
    """`task`, `question` and the columns that `reader` returns, for every answer of both roles.

    `tasks` and `artefacts` hold one file per task, named `<task>.<kind>`.
    """
    questions = _read_all(tasks, _reader(TASK_COLUMNS)).select("example_id", "question", "task")
    rows = _read_all(artefacts, reader)
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
    return lambda path: read_parquet(path, columns)


def _read_all(paths: Sequence[str], reader: Read) -> pl.DataFrame:
    """The rows of all files, with the slug of their `task`."""
    return pl.concat(reader(path).with_columns(task=pl.lit(Path(path).stem)) for path in paths)
