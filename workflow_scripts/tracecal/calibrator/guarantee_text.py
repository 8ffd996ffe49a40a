"""Guaranteed error rates in words, for the report and the card."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from tracecal.calibration.guarantees.parts import PARTS_NEED
from tracecal.calibrator.catalogue import FIXED_SCORE, LABELS
from tracecal.calibrator.decision import percent
from tracecal.calibrator.schema import ErrorRateControl

SHOWN_VALUES = 3  # of a column with more errors than guaranteed; the card lists all
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
    target = f"at most {row['error_rate']:.0%} wrong:"
    if row["threshold"] is None:
        return f"{target} cannot be guaranteed"
    return f"{target} keeps {row['coverage']:.0%} of the answers ({row['error']:.1%} observed)"


def describe_terms(control: ErrorRateControl) -> str:
    """Describe the guarantees' confidence, single and joint, and the groups that they cover."""
    terms = f"each with confidence {control.confidence:g}"
    if control.joint_confidence is not None and len(control.thresholds) > 1:
        terms += f" and all at once with {control.joint_confidence:g}"
    if control.most_parts is not None:
        terms += f"; parts of answers with more than {control.most_parts} are never kept"
    return terms


def describe_ranking(control: ErrorRateControl, n_kept: int, n_others: int) -> str:
    """Describe the ranking, and how many other answers the probabilities would keep."""
    label = LABELS[control.ranked_by]
    if control.ranked_by == FIXED_SCORE:
        how = f"{label}, without a fit"
    else:
        how = f"{label}, fitted on labels outside the tests"
    ranking = f"{how}, ranks the answers, and the probabilities are fitted on all labels"
    if not n_others:
        return f"{ranking}; the {n_kept} most probable answers are kept"
    return f"{ranking}: {n_others} of the {n_kept} most probable answers are not kept"


def describe_recall(control: ErrorRateControl, error_rate: float) -> str | None:
    """Describe the guarantee of the recall, alone and with an error rate; None without one."""
    if control.recall is None:
        return None
    alone = control.recall.alone
    target = f"At least {percent(alone.recall)} of the right answers are kept"
    if alone.threshold is None:
        return f"{target}: not with these labels ({alone.reason})."
    sentence = f"{target} where {percent(alone.coverage)} of all are"
    (both,) = (entry for entry in control.recall.both if entry.error_rate == error_rate)
    if both.threshold is None:
        return f"{sentence}; not with at most {percent(error_rate)} wrong as well."
    share = percent(both.coverage)
    return f"{sentence}; with at most {percent(error_rate)} wrong as well, {share} are."


def describe_errors_by_column(control: ErrorRateControl, error_rate: float) -> str | None:
    """Name the column values with more errors than guaranteed; None without a column."""
    if control.by is None:
        return None
    rows = [row for row in control.by.values if row.error_rate == error_rate]
    if not rows:
        return None
    above = [row for row in rows if row.wrong > error_rate * row.kept]
    scope = f"The guarantee is about all {control.by.column} values together"
    if not above:
        return f"{scope}; none of the {len(rows)} has more wrong of its kept labels."
    worst = sorted(above, key=lambda row: (-row.wrong / row.kept, row.value))[:SHOWN_VALUES]
    listed = "; ".join(
        f"{row.value}: {row.wrong} of {row.kept} ({percent(row.low)} to {percent(row.high)})"
        for row in worst
    )
    return f"{scope}; more are wrong in {len(above)} of {len(rows)}: {listed}."


def describe_missing_answers(control: ErrorRateControl) -> str | None:
    """Say how many unlabelled answers a guarantee of groups needs; None if there are enough."""
    reasons = {entry.reason for entry in control.thresholds if entry.reason}
    missing = [reason for reason in reasons if reason.startswith(PARTS_NEED)]
    if not missing:
        return None
    return f"{missing[0][0].upper()}{missing[0][1:]}: give them with --unlabelled."
