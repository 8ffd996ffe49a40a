"""AUROC, TPR at fixed false-positive rates and partial AUROC on localized and global errors."""

from trace_workflow.tables.localized import Shown, localized_table
from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import Table

SHOWN = (
    Shown("localized", "auroc", "Loc.", "AUROC"),
    Shown("global", "auroc", "Glob.", "AUROC"),
    Shown("localized", "tpr_at_5", "TPR@5%", "Localized errors"),
    Shown("localized", "tpr_at_10", "TPR@10%", "Localized errors"),
    Shown("localized", "tpr_at_20", "TPR@20%", "Localized errors"),
    Shown("localized", "pauc_at_10", "pAUC@10%", "Localized errors"),
    Shown("global", "tpr_at_10", "TPR@10%", "Global errors"),
)


def table(frames: Frames, settings: Settings) -> Table:
    """From the analysis of the same name."""
    return localized_table("localized_global_errors", frames, settings, SHOWN)
