"""From TRACE to TRACE+: uncalibrated, calibrated, with learned weights, with all features."""

from tracecal.tables.estimator_averages import averages_table
from tracecal.tables.settings import Frames, Settings
from tracecal.writers.table import Table


def table(frames: Frames, settings: Settings) -> Table:
    """From `averages`."""
    return averages_table("bridge", frames, settings, metrics=("brier", "auroc", "ece"))
