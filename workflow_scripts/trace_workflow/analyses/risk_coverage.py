"""Thresholds on TRACE+ with a guaranteed error rate among the answers kept, pair by pair."""

from collections.abc import Mapping, Sequence

import polars as pl

from trace_workflow.analyses.study_files import Pairs, Paths
from tracecal.io.files import read_json

# Those that may be null throughout.
NUMBERS = ("threshold", "error")


def analysis(calibrators: Paths, pairs: Pairs) -> pl.DataFrame:
    """`risk_coverage` from the files of `pairs`."""
    controls = [read_json(path)["trace_plus"]["risk_control"] for path in calibrators]
    return risk_coverage(controls, pairs)


def risk_coverage(controls: Sequence[Mapping], pairs: Pairs) -> pl.DataFrame:
    """One row per (model, task) pair and target error rate.

    `controls` holds each pair's `risk_control` from the calibrators: its settings, and the result
    for each rate. Columns `model`, `task`, the settings, then those of the results; `threshold` is
    null where none guarantees the rate.
    """
    rows = [
        {"model": model, "task": task}
        | {key: value for key, value in control.items() if key != "thresholds"}
        | threshold
        for (model, task), control in zip(pairs, controls, strict=True)
        for threshold in control["thresholds"]
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    numbers = dict.fromkeys(NUMBERS, pl.Float64) | {"enough": pl.Int64, "reason": pl.String}
    return frame.cast(numbers).sort("model", "task", "error_rate")
