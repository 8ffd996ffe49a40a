"""Means over splits of metrics of the pooled answers of several tasks."""

import polars as pl

from trace_workflow.analyses.averages import average_over_splits
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.io.files import read_parquet


def analysis(files: StudyFiles, what: str) -> pl.DataFrame:
    """The averages of the file `measured`, by its column `what` ('estimator', 'features')."""
    keys = ["model", "tasks", what, "metric"]
    return average_over_splits(read_parquet(files["measured"], needed=keys), keys)
