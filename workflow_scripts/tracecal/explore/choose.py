"""Choosing the answers that the explorer shows where there are too many for one page."""

from hashlib import sha256

import polars as pl


def choose_answers(answers: pl.DataFrame, limit: int, seed: int) -> pl.DataFrame:
    """At most `limit` rows of `answers`, sorted by `model`, `task` and `example_id`.

    Every (model, task) pair contributes equally many, a small one all of its rows. The choice
    depends only on seed, task and example: models are shown on the same questions, and a smaller
    limit shows a subset of a larger one's answers. Where `answers` has the columns PLACE, an
    answer's parts are shown together, of the answers that are shown themselves.
    """
    of_parts = "parent_id" in answers.columns
    task = pl.coalesce("parent_task", "task") if of_parts else pl.col("task")
    answer = pl.coalesce("parent_id", "example_id") if of_parts else pl.col("example_id")
    named = answers.with_columns(answer=answer)
    ranks = [
        sha256(f"{seed}:{task}:{example}".encode()).hexdigest()
        for task, example in answers.select(task, answer).iter_rows()
    ]
    return (
        named.with_columns(rank=pl.Series(ranks, dtype=pl.String))
        .with_columns(place=pl.col("rank").rank("dense").over("model", "task"))
        .sort("place", "task", "model", "answer")
        .with_row_index("at")
        # An answer of which only some parts would fit is left out.
        .filter(pl.col("at").max().over("model", "task", "answer") < limit)
        .drop("rank", "place", "answer", "at")
        .sort("model", "task", "example_id")
    )
