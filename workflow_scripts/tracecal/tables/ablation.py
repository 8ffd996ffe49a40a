"""TRACE+ with features added or taken away, and local features alone."""

from tracecal.tables.estimator_averages import averages_table
from tracecal.tables.settings import Frames, Settings
from tracecal.writers.table import Table


def table(frames: Frames, settings: Settings) -> Table:
    """From `averages`, of both studies."""
    return averages_table("ablation", frames, settings, by_study=True)
