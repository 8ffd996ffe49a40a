"""Thresholds with a guaranteed error rate among the answers kept, pair by pair."""

from collections.abc import Mapping, Sequence

import polars as pl

from trace_workflow.analyses.study_files import StudyFiles
from tracecal.io.files import read_json

# Columns that may hold None throughout.
OPTIONAL = {"threshold": pl.Float64, "allowed": pl.Int64, "enough": pl.Int64, "reason": pl.String}
# What a file holds of a control that is no column.
NOT_COLUMNS = {"thresholds", "features", "fit"}


def analysis(files: StudyFiles) -> pl.DataFrame:
    """`risk_coverage` from the calibrators of the pairs."""
    controls = [
        next(fit["risk_control"] for fit in read_json(path).values() if "risk_control" in fit)
        for path in files["calibrators"]
    ]
    return risk_coverage(controls, files.pairs)


def risk_coverage(controls: Sequence[Mapping], pairs: Sequence[Sequence[str]]) -> pl.DataFrame:
    """A row per (model, task) pair and target error rate.

    `controls` holds each pair's `risk_control` from the calibrators: its settings, and the result
    for each rate. Columns `model`, `task`, the settings, then those of the results; `threshold` is
    None where no threshold guarantees the rate.
    """
    rows = [
        {"model": model, "task": task}
        | {key: value for key, value in control.items() if key not in NOT_COLUMNS}
        | threshold
        for (model, task), control in zip(pairs, controls, strict=True)
        for threshold in control["thresholds"]
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.cast(OPTIONAL).sort("model", "task", "error_rate")
