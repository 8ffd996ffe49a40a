"""AUROC by kind of localized error, with the number of pairs."""

from trace_workflow.tables.localized_global_errors import NAMES, Shown, localized_table, most
from trace_workflow.tables.notes import rows_by
from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import Table, number

KINDS = ("number", "entity", "claim", "localized")


def table(frames: Frames, settings: Settings) -> Table:
    """From the analysis of the same name."""
    name = "localized_error_subtypes"
    values = rows_by(frames[name], "estimator", "slice", "metric")
    counts = {kind: number(most(values, kind)["n"], 0) for kind in KINDS}
    shown = [Shown(kind, "auroc", f"(n={counts[kind]})", NAMES[kind]) for kind in KINDS]
    return localized_table(name, frames, settings, shown)
