from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from tracecal.calibration.predictions import mean_probabilities
from tracecal.explorer.columns import (
    HELD_OUT,
    LABEL,
    NO_PLACE,
    OF_PARENT,
    PEAK,
    PLACE,
    PREDICTION,
    PROBABILITY,
    SCORE,
    SPLIT,
    TASK,
    TRACE,
)
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet
from tracecal.io.traces import read_traces


def read_parents(shown: pl.DataFrame, traces: Mapping[tuple[str, str], str]) -> pl.DataFrame | None:
    """ANSWER, OF_PARENT and `peak` of the answers that the parts among `shown` are of.

    `traces` are the files of those answers, by (model, task); null where there are none.
    """
    found = []
    for (model, task), path in traces.items():
        ids = shown.filter(model=model, parent_task=task)["parent_id"].unique()
        frame = read_traces(path, ["example_id", *OF_PARENT])
        own = frame.filter(pl.col("example_id").is_in(ids.implode()))
        found.append(own.select(pl.lit(model).alias("model"), pl.lit(task).alias("task"), pl.all()))
    return pl.concat(found).with_columns(peak=PEAK) if found else None


class Files(NamedTuple):
    """The files of one (model, task) pair."""

    traces: str
    task: str
    labels: str
    scores: str
    predictions: str


def read_answers(
    files: Files, estimators: Sequence[str], parent: str | None = None
) -> pl.DataFrame:
    """One row per evaluated answer of a pair, sorted by `example_id`.

    `parent` is the task whose answers these are parts of; null: they are whole. The columns of
    TRACE, PLACE, TASK and LABEL; `peak`, the first token of the peak window, from 0; and of
    every estimator `probability.<id>`, the mean over the splits that evaluate the answer,
    `held_out.<id>`, that of the one split SPLIT, and `score.<id>`, all null where there is none.
    Every pair has the same columns in the same order.
    Raises `InputError` where a file is unreadable, lacks a column or has other examples.
    """
    scores = evaluated(read_parquet(files.scores, needed=["example_id"]), files.task)
    places = [name for name in PLACE if parent and name != "parent_task"]
    place = NO_PLACE | {name: pl.col(name) for name in places}
    place["parent_task"] = pl.lit(parent, pl.String)
    parts = [
        read_traces(files.traces, [*TRACE, *places]).select(*TRACE, **place),
        read_parquet(files.task, TASK),
        read_parquet(files.labels, LABEL),
    ]
    answers = scores.select("example_id")
    for part in parts:
        answers = answers.join(evaluated(part, files.task), on="example_id", validate="1:1")
    answers = answers.with_columns(peak=PEAK)
    predictions = read_parquet(files.predictions, PREDICTION)
    means, held_out = (
        mean_probabilities(chosen, "estimator", "example_id").pivot(
            "estimator", index="example_id", values="probability"
        )
        for chosen in (predictions, predictions.filter(split=SPLIT))
    )
    missing = pl.lit(None, pl.Float64)
    for prefix, frame in ((PROBABILITY, means), (HELD_OUT, held_out), (SCORE, scores)):
        columns = {
            prefix + name: pl.col(name) if name in frame.columns else missing for name in estimators
        }
        own = frame.select("example_id", **columns)
        answers = answers.join(own, on="example_id", how="left", validate="1:1")
    return answers.sort("example_id")
