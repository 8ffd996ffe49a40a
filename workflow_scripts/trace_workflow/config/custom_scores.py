"""Custom estimators: expressions over the columns of traces and features."""

import polars as pl

from trace_workflow.config.custom import require_unedited
from tracecal.errors import InputError
from tracecal.estimators.custom import custom_entries
from tracecal.io.files import read_parquet
from tracecal.io.traces import evaluated, read_traces

TRACE = ["example_id", "answer", "finish_reason", "tokens", "surprisal", "entropy"]


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
    frame = evaluated(read_traces(traces, TRACE), task)
    frame = frame.join(columns, on="example_id", how="left", validate="1:1")
    scores = {name: entry.score for name, entry in custom_entries(file).items()}
    try:
        return frame.select(
            "example_id", **{name: score.cast(pl.Float64) for name, score in scores.items()}
        )
    except (pl.exceptions.PolarsError, AttributeError) as error:
        raise InputError(
            f"{file}: the scores cannot be computed ({str(error).splitlines()[0]}); columns are "
            f"{', '.join(frame.columns)}."
        ) from error
