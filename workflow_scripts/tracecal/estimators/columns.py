"""The user's own columns (study.columns): numbers that files of answers hold beside the trace."""

import polars as pl
import polars.selectors as cs

from tracecal.answers.record import ALSO
from tracecal.estimators.custom_scores import SCORES as SCORES
from tracecal.io.files import read_parquet


def answers(task: str) -> pl.DataFrame:
    """`example_id` and the own columns of the evaluated answers, by name.

    `task` is the file of the task's rows that a model has an answer to.
    """
    rows = read_parquet(task, needed=["example_id", "role"]).filter(role="evaluation")
    columns = cs.starts_with(ALSO).name.map(lambda name: name.removeprefix(ALSO))
    return rows.select("example_id", columns)
