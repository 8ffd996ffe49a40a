"""A supervised estimator's probabilities for a model's answers, task by task."""

import polars as pl

from tracecal.storage.files import read_parquet
from tracecal.tasks.roles import evaluated


def supervised_answers(learned: str, task: str, slug: str) -> pl.DataFrame:
    """`example_id` and `probability` of the evaluated answers to the task `slug`.

    `learned` is the file of all of a model's answers, `task` that of the task's rows.
    """
    scored = read_parquet(learned, ["task", "example_id", "probability"])
    # Ids are unique only within a task.
    return evaluated(scored.filter(task=slug).drop("task"), task)
