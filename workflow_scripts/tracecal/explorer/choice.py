"""The choice of answers for a page that has no room for all of them."""

from hashlib import sha256

import polars as pl


def choose_answers(answers: pl.DataFrame, limit: int, seed: int) -> pl.DataFrame:
    """At most `limit` rows of `answers`, sorted by `model`, `task` and `example_id`.

    Every (model, task) pair contributes equally many, a small one all of its rows. The choice
    depends only on seed, task and example: the page shows all models on the same questions, and a
    smaller limit shows a subset of a larger one's answers. With the columns PLACE the parts of an
    answer are chosen together.
    """
    has_parts = "parent_id" in answers.columns
    task = pl.coalesce("parent_task", "task") if has_parts else pl.col("task")
    answer = pl.coalesce("parent_id", "example_id") if has_parts else pl.col("example_id")
    hashes = [
        sha256(f"{seed}:{task_name}:{example_id}".encode()).hexdigest()
        for task_name, example_id in answers.select(task, answer).iter_rows()
    ]
    return (
        answers.with_columns(answer=answer, hash=pl.Series(hashes, dtype=pl.String))
        .with_columns(rank=pl.col("hash").rank("dense").over("model", "task"))
        .sort("rank", "task", "model", "answer")
        .with_row_index("row")
        # Leave out an answer of which only some parts would fit.
        .filter(pl.col("row").max().over("model", "task", "answer") < limit)
        .drop("hash", "rank", "answer", "row")
        .sort("model", "task", "example_id")
    )
