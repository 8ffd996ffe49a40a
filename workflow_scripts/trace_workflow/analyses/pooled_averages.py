"""Means over splits of metrics of the pooled answers of several tasks."""

import polars as pl

from trace_workflow.analyses.averages import over_splits
from tracecal.io.files import read_parquet


def analysis(measured: str, what: str) -> pl.DataFrame:
    """The averages of the file `measured`, by its column `what` ('estimator', 'features')."""
    keys = ["model", "tasks", what, "metric"]
    return over_splits(read_parquet(measured, needed=keys), keys)
