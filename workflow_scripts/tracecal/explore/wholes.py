"""Parts of answers on the page: each within its whole answer, whose tokens the page holds once."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from tracecal.decode.traces import read_traces
from tracecal.features.operators import WINDOW, window_start

# Of a part, or null: the task and the id of its answer, its name and its tokens [start, end) there.
PLACE = {
    "parent_task": pl.String,
    "parent_id": pl.String,
    "part": pl.String,
    "start": pl.Int32,
    "end": pl.Int32,
}
NO_PLACE = {name: pl.lit(None, dtype) for name, dtype in PLACE.items()}
# What a part's row leaves to its whole answer.
OF_WHOLE = ("prompt", "tokens", "surprisal", "entropy")
ANSWER = ("model", "task", "example_id")
PEAK = window_start(pl.col("entropy"), WINDOW).cast(pl.Int32)


def read_wholes(shown: pl.DataFrame, traces: Mapping[tuple[str, str], str]) -> pl.DataFrame | None:
    """ANSWER, OF_WHOLE and `peak` of the answers that the parts among `shown` are of.

    `traces` are the files of those answers, by (model, task); null where there are none.
    """
    found = []
    for (model, task), path in traces.items():
        ids = shown.filter(model=model, parent_task=task)["parent_id"].unique()
        frame = read_traces(path, ["example_id", *OF_WHOLE])
        own = frame.filter(pl.col("example_id").is_in(ids.implode()))
        found.append(own.select(pl.lit(model).alias("model"), pl.lit(task).alias("task"), pl.all()))
    return pl.concat(found).with_columns(peak=PEAK) if found else None


def apart(answers: pl.DataFrame, wholes: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, Any]]:
    """`answers` (with the columns PLACE) without the tokens that their wholes hold, and where each
    is: the row of an answer, that of its whole, its name and its tokens [start, end); these three
    are null of a whole answer itself.
    """
    own = answers.with_row_index("row").select(
        "row",
        "model",
        "part",
        "start",
        "end",
        task=pl.coalesce("parent_task", "task"),
        example_id=pl.coalesce("parent_id", "example_id"),
    )
    numbered = wholes.select(ANSWER).with_row_index("whole")
    found = own.join(numbered, on=ANSWER, maintain_order="left")
    elsewhere = pl.int_range(pl.len()).is_in(found["row"].implode())
    places = found.select("row", "whole", "part", "start", "end")
    left = [pl.when(~elsewhere).then(name).alias(name) for name in OF_WHOLE]
    return answers.with_columns(left), places.to_dict(as_series=False)
