"""A task's labelled answers with all inputs: what calibration starts from."""

from pathlib import Path

import polars as pl
import polars.selectors as cs

from tracecal.answers.groups import place_answers
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet


def read_labelled_answers(
    labels: str | Path, task: str | Path, scores: str | Path, features: str | Path
) -> pl.DataFrame:
    """One row per evaluated answer, sorted by `example_id`, with `group_id`, `correct`, all inputs.

    Columns of the files `scores` and `features` are named `scores.<column>` and
    `features.<column>`: some share a name and differ in sign. Raises `InputError` where a file
    is unreadable or an evaluated example has no label.
    """
    labelled = read_parquet(labels, ["example_id", "correct"])
    answers = evaluated(labelled, task, ["group_id"])
    for folder, path in (("scores", scores), ("features", features)):
        columns = read_parquet(path, needed=["example_id"])
        prefixed = columns.select("example_id", pl.exclude("example_id").name.prefix(f"{folder}."))
        answers = answers.join(prefixed, on="example_id", how="left", validate="1:1")
    return answers


def with_representatives(
    answers: pl.DataFrame, rows: pl.DataFrame, traces: pl.DataFrame
) -> pl.DataFrame:
    """`answers` with `represents`: whether each is the one of its question that tests.

    `rows` are the task's, whose `group_id` names questions; parts keep their `parent_id`.
    """
    parent = ["parent_id"] if "parent_id" in rows.columns else []
    rows = rows.select("example_id", "group_id", *parent)
    groups = answers.select("example_id").join(rows, on="example_id", how="left")
    contents = groups.join(traces, on="example_id", how="left")
    contents = contents.with_columns(asked=pl.lit(None, pl.String))
    places = place_answers(contents, groups).select("example_id", "represents")
    places = places.join(groups.select("example_id", *parent), on="example_id")
    return answers.join(places, on="example_id", validate="1:1", maintain_order="left")


def raw_scores(answers: pl.DataFrame) -> pl.DataFrame:
    """`example_id` and the columns of `scores/` under their own names."""
    renamed = cs.starts_with("scores.").name.map(lambda name: name.removeprefix("scores."))
    return answers.select("example_id", renamed)
