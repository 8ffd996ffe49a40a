"""Guaranteed error rates in words, for the report and the card."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from tracecal.calibrator.schema import ErrorRateControl

GUARANTEES = {
    "error_rate": pl.Float64,
    "threshold": pl.Float64,
    "coverage": pl.Float64,
    "error": pl.Float64,
    "enough": pl.Int64,
}


def guarantee_table(control: ErrorRateControl) -> pl.DataFrame:
    """Columns of `GUARANTEES`, a row per target error rate."""
    rows = [
        {
            "error_rate": entry.error_rate,
            "threshold": entry.threshold,
            "coverage": None if entry.threshold is None else entry.coverage,
            "error": entry.error,
            "enough": entry.enough,
        }
        for entry in control.thresholds
    ]
    return pl.DataFrame(rows, schema=GUARANTEES)


def guarantee_lines(guarantees: pl.DataFrame) -> list[str]:
    """A sentence per target error rate of a `guarantee_table`."""
    return [_line(row) for row in guarantees.iter_rows(named=True)]


def _line(row: Mapping[str, Any]) -> str:
    target = f"at most {row['error_rate']:.0%} incorrect:"
    if row["threshold"] is None:
        return f"{target} cannot be guaranteed"
    return f"{target} keeps {row['coverage']:.0%} of the answers ({row['error']:.1%} observed)"


def describe_terms(control: ErrorRateControl) -> str:
    """With what confidence guarantees hold, and how groups count."""
    largest_group = control.largest_group
    counted = f"; a group counts with at most {largest_group} answers" if largest_group > 1 else ""
    return f"each with confidence {control.confidence:g}{counted}"
