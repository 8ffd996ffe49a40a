"""Each of TRACE's operators alone, their fixed mixture, and a learned one."""

from tracecal.tables.estimator_averages import averages_table
from tracecal.tables.settings import Frames, Settings
from tracecal.writers.table import Table


def table(frames: Frames, settings: Settings) -> Table:
    """From `averages`."""
    return averages_table(
        "operator_ablation", frames, settings, metrics=("auroc",), area="Avg. AUROC"
    )
