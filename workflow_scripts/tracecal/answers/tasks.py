"""The tasks that rows name: answers to several are neither pooled nor scored in silence.

`calibrate` fits on `answers_of_task` and takes the unlabelled ones `of_their_tasks`; a calibrator
stores their `task_names`.
"""

import polars as pl

from tracecal.io.log import LOGGER

MIN_ANSWERS_PER_TASK = 5  # with fewer on average, the names are instructions or ids


def task_names(answers: pl.DataFrame) -> dict[str, int]:
    """Count the answers by the task that they name; empty if these texts are no task names.

    >>> task_names(pl.DataFrame({"row_task": ["cities"] * 7 + ["sums"] * 5 + [None]}))
    {'cities': 7, 'sums': 5}
    """
    counts = answers.select(pl.col("row_task").drop_nulls().value_counts(sort=True)).unnest(
        "row_task"
    )
    are_names = counts["count"].sum() >= MIN_ANSWERS_PER_TASK * counts.height
    return dict(counts.iter_rows()) if are_names else {}


def answers_of_task(answers: pl.DataFrame, task: str) -> pl.DataFrame:
    """Select the answers to `task` if rows name it and other tasks; otherwise return all.

    Warns how many are left out, or that answers to several tasks are pooled.
    """
    counts = task_names(answers)
    if len(counts) < 2:
        return answers
    listed = ", ".join(f"{name} ({count})" for name, count in counts.items())
    if task not in counts:
        LOGGER.warning(
            "the labelled answers are to %d tasks, which are pooled: %s. What is guaranteed holds "
            "for a like mix of them, and for none alone; name one to calibrate on it (--task %s)",
            *(len(counts), listed, next(iter(counts))),
        )
        return answers
    chosen = answers.filter((pl.col("row_task") == task).fill_null(False))
    LOGGER.warning(
        "the answers are to %d tasks: %s. Those to %s are used, and %d left out; another name "
        "pools all (--task)",
        *(len(counts), listed, task, answers.height - chosen.height),
    )
    return chosen


def of_their_tasks(unlabelled: pl.DataFrame, labelled: pl.DataFrame) -> pl.DataFrame:
    """Select the unlabelled answers to the labelled answers' tasks; all if rows name no task."""
    names = task_names(labelled)
    if not names:
        return unlabelled
    chosen = unlabelled.filter(pl.col("row_task").is_in([*names]) | pl.col("row_task").is_null())
    if n_others := unlabelled.height - chosen.height:
        LOGGER.warning("left out %d unlabelled answers to other tasks", n_others)
    return chosen
