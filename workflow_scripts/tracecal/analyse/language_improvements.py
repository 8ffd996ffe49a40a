"""How much better TRACE+ is than the best baseline in each language, without intervals."""

from collections.abc import Sequence

import polars as pl

from tracecal.analyse.averages import AVERAGES
from tracecal.analyse.improvements import gains
from tracecal.storage.files import read_parquet


def analysis(averages: str, baselines: Sequence[str]) -> pl.DataFrame:
    """The `gains` of a run's file of averages by language."""
    by_language = read_parquet(averages, [*AVERAGES, "language"])
    return gains(by_language, baselines, by=["language"])
