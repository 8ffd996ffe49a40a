"""Columns of the answers that the explorer shows."""

import polars as pl

from tracecal.features.features import WINDOW
from tracecal.features.operators import window_start

# Where a part stands, None for whole answers: the task and the id of its answer, its name, and its
# tokens [start, end) there.
PLACE = {
    "parent_task": pl.String,
    "parent_id": pl.String,
    "part": pl.String,
    "start": pl.Int32,
    "end": pl.Int32,
}
NO_PLACE = {name: pl.lit(None, dtype) for name, dtype in PLACE.items()}
# Columns that a part shares with its whole answer.
OF_PARENT = ("prompt", "tokens", "surprisal", "entropy")
ANSWER = ("model", "task", "example_id")
# The first token, counted from 0, of the window with the highest mean entropy.
PEAK = window_start(pl.col("entropy"), WINDOW).cast(pl.Int32)

TRACE = ["example_id", "prompt", "tokens", "surprisal", "entropy"]
TASK = ["example_id", "group_id", "language", "question", "context", "references", "distractors"]
LABEL = ["example_id", "prediction", "correct", "error_kind"]
PREDICTION = ["example_id", "estimator", "split", "probability"]
# Prefixes of an estimator's columns.
PROBABILITY, HELD_OUT, SCORE = "probability.", "held_out.", "score."
# The split whose held-out answers the overview shows: the one that tests thresholds.
SPLIT = 0
