"""A task's labelled answers: the input of calibration, and mean predictions."""

from pathlib import Path

import polars as pl
import polars.selectors as cs

from tracecal.storage.files import read_parquet
from tracecal.tasks.roles import evaluated


def read_answers(
    labels: str | Path, task: str | Path, scores: str | Path, features: str | Path
) -> pl.DataFrame:
    """One row per evaluated answer, sorted by `example_id`, with `group_id`, `correct`, all inputs.

    Columns of the files `scores` and `features` are named `scores.<column>` and
    `features.<column>`: some share a name and differ in sign. Raises `InputError` where a file
    is unreadable or an evaluated example has no label.
    """
    labelled = read_parquet(labels, ["example_id", "correct"]).select("example_id", "correct")
    answers = evaluated(labelled, task, ["group_id"])
    for folder, path in (("scores", scores), ("features", features)):
        columns = read_parquet(path, ["example_id"])
        prefixed = columns.select("example_id", pl.exclude("example_id").name.prefix(f"{folder}."))
        answers = answers.join(prefixed, on="example_id", how="left", validate="1:1")
    return answers


def raw_scores(answers: pl.DataFrame) -> pl.DataFrame:
    """`example_id` and the columns of `scores/` under their own names."""
    renamed = cs.starts_with("scores.").name.map(lambda name: name.removeprefix("scores."))
    return answers.select("example_id", renamed)


def mean_probabilities(predictions: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """`keys` and the mean `probability` over the splits that evaluate them."""
    # Sorted, so that sums are rounded alike whatever the order of the rows.
    ordered = predictions.sort(*keys, "split").group_by(keys, maintain_order=True)
    return ordered.agg(pl.col("probability").mean())
