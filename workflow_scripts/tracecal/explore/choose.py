"""Choosing the answers that the explorer shows where there are too many for one page."""

from hashlib import sha256

import polars as pl


def choose_answers(answers: pl.DataFrame, limit: int, seed: int) -> pl.DataFrame:
    """At most `limit` rows of `answers`, sorted by `model`, `task` and `example_id`.

    Every (model, task) pair contributes equally many, a small one all of its rows. The choice
    depends only on seed, task and example: models are shown on the same questions, and a smaller
    limit shows a subset of a larger one's answers.
    """
    ranks = [
        sha256(f"{seed}:{task}:{example}".encode()).hexdigest()
        for task, example in answers.select("task", "example_id").iter_rows()
    ]
    place = pl.col("rank").rank("ordinal").over("model", "task")
    return (
        answers.with_columns(rank=pl.Series(ranks, dtype=pl.String))
        .sort(place, "task", "model")
        .head(limit)
        .drop("rank")
        .sort("model", "task", "example_id")
    )
