"""Semantic estimators with TRACE's operators, and TRACE+ with semantic estimators."""

from tracecal.tables.estimator_averages import averages_table
from tracecal.tables.settings import Frames, Settings
from tracecal.writers.table import Table


def table(frames: Frames, settings: Settings) -> Table:
    """From `averages`; differences are small, hence a digit more."""
    return averages_table("semantic_fusion", frames, settings, decimals=4, heading="Method")
