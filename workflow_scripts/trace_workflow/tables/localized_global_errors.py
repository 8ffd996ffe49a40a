"""Localized beside global errors: AUROC, TPR at fixed false-positive rates and partial AUROC."""

from trace_workflow.tables.localized_table import SliceColumn, localized_table
from trace_workflow.tables.study_results import StudyResults
from trace_workflow.tables.table import Table

COLUMNS = (
    SliceColumn("localized", "auroc", "Loc.", "AUROC"),
    SliceColumn("global", "auroc", "Glob.", "AUROC"),
    SliceColumn("localized", "tpr_at_5", "TPR@5%", "Localized errors"),
    SliceColumn("localized", "tpr_at_10", "TPR@10%", "Localized errors"),
    SliceColumn("localized", "tpr_at_20", "TPR@20%", "Localized errors"),
    SliceColumn("localized", "pauc_at_10", "pAUC@10%", "Localized errors"),
    SliceColumn("global", "tpr_at_10", "TPR@10%", "Global errors"),
)


def table(study: StudyResults) -> Table:
    """From the analysis of the same name."""
    return localized_table("localized_global_errors", study, COLUMNS)
