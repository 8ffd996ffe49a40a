"""The rows that train supervised estimators: labelled, and separate from evaluation."""

import hashlib
from collections.abc import Sequence

import polars as pl

from tracecal.errors import InputError
from tracecal.jobs.progress import LOGGER

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


def held_out(groups: Sequence[str], share: float, seed: int) -> list[bool]:
    """Which rows are held out for early stopping: whole groups, about `share` of them.

    Groups are ranked by a hash of their name, so the rows' order does not matter. At least one
    group is held out and one is not; a single group is never held out.
    """
    ranked = sorted(
        set(groups), key=lambda group: hashlib.sha256(f"{seed}:{group}".encode()).hexdigest()
    )
    count = min(max(1, round(share * len(ranked))), len(ranked) - 1)
    chosen = set(ranked[:count])
    return [group in chosen for group in groups]


def constant_rate(correct: Sequence[bool]) -> float | None:
    """Laplace's rule, (correct + 1) / (n + 2), where all training rows have one class."""
    if len(set(correct)) > 1:
        return None
    rate = (sum(correct) + 1) / (len(correct) + 2)
    LOGGER.warning(
        "all %d training answers are %s: the estimator is the constant %.4f",
        len(correct),
        "correct" if correct[0] else "incorrect",
        rate,
    )
    return rate
