"""Looks at growing labels: calibrating again on more of them may give another false guarantee.

Each look has its level, the chance that a guarantee of it is false; over all looks the chance is at
most the sum of their levels, whatever ranks at each and however many labels it has.
"""

import hashlib
import json

import polars as pl

from tracecal.calibration.guarantees.line import significance_level
from tracecal.calibrator.schema import CalibrationData, Look
from tracecal.io.log import LOGGER


def with_look(
    data: CalibrationData,
    labelled: pl.DataFrame,
    confidence: float,
    planned: int | None = None,
    earlier: CalibrationData | None = None,
) -> CalibrationData:
    """Add to a description the looks at its labels: those of an `earlier` one, and this.

    Parameters
    ----------
    data : CalibrationData
        The description of the labelled answers.
    labelled : polars.DataFrame
        Their `fingerprint` and `correct`.
    confidence : float
        Confidence of all planned looks together; where none are planned, of each.
    planned : int, optional
        How many looks are planned, stated with the first.
    earlier : CalibrationData, optional
        Description of an earlier look. It counts if both share a labelled answer; the same answers
        with the same verdicts are the same look.
    """
    looks: tuple[Look, ...] = ()
    if earlier is not None and share_answers(data, earlier):
        looks = earlier.looks
        if planned not in (None, earlier.planned_looks):
            LOGGER.warning(
                "--looks is stated with the first look, which planned %s: it changes nothing",
                earlier.planned_looks or "none",
            )
        planned = earlier.planned_looks
    elif earlier is not None:
        LOGGER.warning(
            "--after: its file has none of these labelled answers, so this is a first look"
        )
    digest = digest_of(labelled)
    if all(look.digest != digest for look in looks):
        level = significance_level(confidence) / (planned or 1)
        looks = (*looks, Look(labels=labelled.height, level=level, digest=digest))
    return data.model_copy(update={"looks": looks, "planned_looks": planned})


def share_answers(data: CalibrationData, earlier: CalibrationData) -> bool:
    """Whether a labelled answer of one is among those of the other."""
    return not {*data.answers}.isdisjoint(earlier.answers)


def digest_of(labelled: pl.DataFrame) -> str:
    """A digest of labelled answers and their verdicts, whatever their order."""
    rows = labelled.select(pl.col("fingerprint").fill_null(""), "correct").sort(pl.all())
    return hashlib.sha256(json.dumps(rows.rows()).encode()).hexdigest()[:16]


def level_of(data: CalibrationData, labelled: pl.DataFrame) -> float:
    """The level of the look at these labels."""
    digest = digest_of(labelled)
    return next(look.level for look in data.looks if look.digest == digest)


def looks_confidence(data: CalibrationData) -> float | None:
    """The confidence that no guarantee of all looks is false; None of a single one."""
    if len(data.looks) < 2:
        return None
    return max(0.0, round(1 - sum(look.level for look in data.looks), 12))
