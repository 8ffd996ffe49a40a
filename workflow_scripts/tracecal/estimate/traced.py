"""The answers of a task for the families of estimators that score traces alone."""

import polars as pl

from tracecal.decode.traces import read_traces
from tracecal.tasks.roles import evaluated


def trace_answers(traces: str, task: str) -> pl.DataFrame:
    """The evaluated answers of a task with their traces."""
    return evaluated(read_traces(traces, ["example_id", "surprisal", "entropy"]), task)
