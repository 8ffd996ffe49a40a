"""Scores of custom estimators: expressions over the columns of traces and features."""

import polars as pl

from tracecal.estimators.custom import custom_scores
from tracecal.estimators.trace_inputs import TRACE_COLUMNS, compute_custom_scores
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet
from tracecal.io.traces import read_traces


class ComputedScores(dict[str, pl.Expr]):
    """Scores that `answers` has computed: each is the column of its name."""

    def __missing__(self, name: str) -> pl.Expr:
        return pl.col(name)


SCORES = ComputedScores()


def answers(traces: str, features: str, task: str, file: str) -> pl.DataFrame:
    """`example_id` and the scores of the evaluated answers by the estimators of `file`.

    Raises `InputError` where an expression does not work on these columns.
    """
    columns = read_parquet(features, needed=["example_id"])
    frame = evaluated(read_traces(traces, list(TRACE_COLUMNS)), task)
    frame = frame.join(columns, on="example_id", how="left", validate="1:1")
    return compute_custom_scores(frame, custom_scores(file))
