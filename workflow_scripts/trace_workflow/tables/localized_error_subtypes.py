"""AUROC by kind of localized error, with the number of pairs."""

from trace_workflow.tables.localized_table import (
    SLICE_NAMES,
    SliceColumn,
    largest_row,
    localized_table,
)
from trace_workflow.tables.study_results import StudyResults, rows_by
from trace_workflow.tables.table import Table, format_number

NAME = "localized_error_subtypes"
KINDS = ("number", "entity", "claim", "localized")


def table(study: StudyResults) -> Table:
    """From the analysis of the same name."""
    values = rows_by(study.frames[NAME], "estimator", "slice", "metric")
    sizes = {kind: format_number(largest_row(values, kind)["n"], 0) for kind in KINDS}
    columns = [
        SliceColumn(kind, "auroc", f"(n={sizes[kind]})", SLICE_NAMES[kind]) for kind in KINDS
    ]
    return localized_table(NAME, study, columns)
