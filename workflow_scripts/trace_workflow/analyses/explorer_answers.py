"""The answers of a run as the explorer's page shows them, read from the files of a pair."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tracecal.estimators.estimator import TRACE_PLUS
from tracecal.explorer import explorer_contents as contents
from tracecal.fits.predictions import mean_probabilities
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet
from tracecal.io.traces import read_traces


def read_parents(
    answers: pl.DataFrame, traces: Mapping[tuple[str, str], str]
) -> pl.DataFrame | None:
    """Read ANSWER, OF_PARENT and `peak` of the whole answers that some `answers` are parts of.

    `traces` holds the trace files of the whole answers by (model, task). None if there are none.
    """
    frames = []
    for (model, task), path in traces.items():
        ids = answers.filter(model=model, parent_task=task)["parent_id"].unique()
        parents = read_traces(path, ["example_id", *contents.OF_PARENT])
        parents = parents.filter(pl.col("example_id").is_in(ids.implode()))
        frames.append(
            parents.select(pl.lit(model).alias("model"), pl.lit(task).alias("task"), pl.all())
        )
    return pl.concat(frames).with_columns(peak=contents.PEAK) if frames else None


def show_guarantee(
    paths: Sequence[str],
    headline: Mapping[str, Any],
    answers: pl.DataFrame,
    tasks: Mapping[str, str],
) -> dict[str, Any] | None:
    """Make the page's `decision` from the headline's row of `risk_coverage`.

    `paths` holds its file, unless the run has no guarantees; `tasks` are labels by slug.
    """
    rows = [row for path in paths for row in read_parquet(path).filter(**headline).to_dicts()]
    if not rows:
        return None
    pair = answers.filter(model=headline["model"], task=headline["task"])
    probability = pair[contents.HELD_OUT + TRACE_PLUS]
    return contents.kept_share(rows[0], probability, f" on {tasks[headline['task']]}")


def read_explorer_answers(
    files: Mapping[str, str], estimators: Sequence[str], parent: str | None = None
) -> pl.DataFrame:
    """Read a row per evaluated answer of a pair, sorted by `example_id`.

    `files` are the pair's, by kind: traces, tasks, labels, scores and predictions. `parent` is the
    task whose answers these are parts of, None for whole answers. The columns are those of TRACE,
    PLACE, TASK and LABEL; `peak`, the first token of the peak window, from 0; and three per
    estimator, None where undefined: `probability.<id>`, the mean over the splits that evaluate the
    answer; `held_out.<id>`, the probability in the split SPLIT; and `score.<id>`.
    Every pair has the same columns in the same order.
    Raises `InputError` where a file is unreadable, lacks a column or has other examples.
    """
    scores = evaluated(read_parquet(files["scores"], needed=["example_id"]), files["tasks"])
    place_columns = [name for name in contents.PLACE if parent and name != "parent_task"]
    location = contents.NO_PLACE | {name: pl.col(name) for name in place_columns}
    location["parent_task"] = pl.lit(parent, pl.String)
    answers = scores.select("example_id")
    for frame in (
        read_traces(files["traces"], [*contents.TRACE, *place_columns]).select(
            *contents.TRACE, **location
        ),
        read_parquet(files["tasks"], contents.TASK),
        read_parquet(files["labels"], contents.LABEL),
    ):
        answers = answers.join(evaluated(frame, files["tasks"]), on="example_id", validate="1:1")
    answers = answers.with_columns(peak=contents.PEAK)
    predictions = read_parquet(files["predictions"], contents.PREDICTION)
    means, held_out = (
        mean_probabilities(rows, "estimator", "example_id").pivot(
            "estimator", index="example_id", values="probability"
        )
        for rows in (predictions, predictions.filter(split=contents.SPLIT))
    )
    missing = pl.lit(None, pl.Float64)
    for prefix, frame in (
        (contents.PROBABILITY, means),
        (contents.HELD_OUT, held_out),
        (contents.SCORE, scores),
    ):
        columns = {
            prefix + name: pl.col(name) if name in frame.columns else missing for name in estimators
        }
        renamed = frame.select("example_id", **columns)
        answers = answers.join(renamed, on="example_id", how="left", validate="1:1")
    return answers.sort("example_id")
