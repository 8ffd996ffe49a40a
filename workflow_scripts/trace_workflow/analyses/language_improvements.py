"""How much better TRACE+ is than the baselines in each language, without intervals."""

from collections.abc import Sequence

import polars as pl

from trace_workflow.analyses.averages import AVERAGES
from trace_workflow.analyses.improvements import gains
from tracecal.io.files import read_parquet


def analysis(averages: str, baselines: Sequence[str], named: str) -> pl.DataFrame:
    """The `gains` of a run's file of averages by language."""
    by_language = read_parquet(averages, [*AVERAGES, "language"])
    return gains(by_language, baselines, named, by=["language"])
