"""Custom estimators: expressions over the columns of traces and features."""

import polars as pl

from trace_workflow.config.custom import require_unedited
from tracecal.estimators.of_traces import OF_TRACE, scored
from tracecal.estimators.registry import custom_scores
from tracecal.io.files import read_parquet
from tracecal.io.traces import evaluated, read_traces


class _Computed(dict[str, pl.Expr]):
    """The scores that `answers` has computed, by their names."""

    def __missing__(self, name: str) -> pl.Expr:
        return pl.col(name)


SCORES = _Computed()


def answers(traces: str, features: str, task: str, file: str, held: str) -> pl.DataFrame:
    """`example_id` and the scores of the evaluated answers by the estimators of `file`.

    `held` is the hash of the file when the run started. Raises `InputError` where the
    file has changed since, or where an expression does not work on these columns.
    """
    require_unedited(file, held)
    columns = read_parquet(features, needed=["example_id"])
    frame = evaluated(read_traces(traces, list(OF_TRACE)), task)
    frame = frame.join(columns, on="example_id", how="left", validate="1:1")
    return scored(frame, custom_scores(file))
