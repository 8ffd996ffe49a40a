"""Evaluated answers with their traces, as families of estimators read them."""

import polars as pl

from tracecal.errors import InputError
from tracecal.io.evaluated import evaluated
from tracecal.io.traces import read_traces


def trace_answers(traces: str, task: str) -> pl.DataFrame:
    """The evaluated answers of a task, with surprisals and entropies."""
    return evaluated(read_traces(traces, ["example_id", "surprisal", "entropy"]), task)


def require_aligned(answers: pl.DataFrame, column: str) -> None:
    """Raise `InputError` unless the list `column` has one entry per token of its answer."""
    unequal = answers.filter(pl.col(column).list.len() != pl.col("surprisal").list.len())
    if unequal.height:
        raise InputError(
            f"the weights of example {unequal['example_id'][0]!r} belong to another answer, with "
            "another number of tokens. Recreate the file under weights/ with snakemake --force."
        )
