"""A task's labelled answers: what calibration is fitted on, and what it says of each."""

from pathlib import Path

import polars as pl
import polars.selectors as cs

from tracecal.storage.files import read_parquet
from tracecal.tasks.roles import evaluated


def read_answers(
    labels: str | Path, task: str | Path, scores: str | Path, features: str | Path
) -> pl.DataFrame:
    """One row per evaluated answer, sorted by `example_id`, with `correct` and all inputs.

    Columns of the files `scores` and `features` are named `scores.<column>` and
    `features.<column>`: some share a name and differ in sign. Raises `InputError` where a file
    is unreadable or an evaluated example has no label.
    """
    judged = read_parquet(labels, ["example_id", "correct"]).select("example_id", "correct")
    answers = evaluated(judged, task)
    for folder, path in (("scores", scores), ("features", features)):
        columns = read_parquet(path, ["example_id"])
        named = columns.select("example_id", pl.exclude("example_id").name.prefix(f"{folder}."))
        answers = answers.join(named, on="example_id", how="left", validate="1:1")
    return answers


def raw_scores(answers: pl.DataFrame) -> pl.DataFrame:
    """`example_id` and the columns of `scores/` under their own names."""
    named = cs.starts_with("scores.").name.map(lambda name: name.removeprefix("scores."))
    return answers.select("example_id", named)


def mean_probabilities(predictions: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """`keys` and the mean `probability` over the splits in which what they name was evaluated."""
    # Sorted, so that sums are rounded alike whatever the order of the rows.
    ordered = predictions.sort(*keys, "split").group_by(keys, maintain_order=True)
    return ordered.agg(pl.col("probability").mean())
