"""Estimators that were trained on separate labelled rows and give a probability.

The internal-state probe (Ji et al. 2024) is confident before a token is generated; LARS (Yaldiz et
al. 2025) is a learned score of the text and token probabilities of an answer.
"""

import polars as pl

from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet

SCORES: dict[str, pl.Expr] = dict.fromkeys(("internal_probe", "lars"), pl.col("probability"))


def answers(learned: str, task: str, slug: str) -> pl.DataFrame:
    """`example_id` and `probability` of the evaluated answers to the task `slug`.

    `learned` is the file of all answers of a model, `task` the file of the rows of the task.
    """
    probabilities = read_parquet(learned, ["task", "example_id", "probability"])
    # Ids are unique only within a task.
    return evaluated(probabilities.filter(task=slug).drop("task"), task)
