"""How much better TRACE+ is than the baselines in each language, without intervals."""

from collections.abc import Sequence

import polars as pl

from trace_workflow.analyses.averages import AVERAGES
from trace_workflow.analyses.gains import gains
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.io.files import read_parquet


def analysis(files: StudyFiles, baselines: Sequence[str], named_baseline: str) -> pl.DataFrame:
    """The `gains` in a run's averages by language."""
    averages = read_parquet(files["averages"], [*AVERAGES, "language"])
    return gains(averages, baselines, named_baseline, by=["language"])
