"""The cascades of all pairs of models of a run as one frame."""

import polars as pl

from trace_workflow.analyses.study_files import StudyFiles
from tracecal.io.files import read_parquet


def analysis(files: StudyFiles) -> pl.DataFrame:
    """Concatenate the rows of all `parts`, in their order."""
    return pl.concat(map(read_parquet, files["parts"]))
