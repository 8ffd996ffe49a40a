"""Scores of the estimators that need only a trace, as Polars expressions over its lists."""

import polars as pl

from tracecal.features.features import input_matrix


def score(name: str) -> pl.Expr:
    """The score `name` of answers with `surprisal` and `entropy`, from the one table of INPUTS."""

    def compute(traces: pl.Series) -> pl.Series:
        frame = traces.struct.unnest()
        return pl.Series(name, input_matrix(frame, [f"scores.{name}"])[:, 0], nan_to_null=True)

    lists = pl.struct("surprisal", "entropy")
    return lists.map_batches(compute, return_dtype=pl.Float64, is_elementwise=True)
