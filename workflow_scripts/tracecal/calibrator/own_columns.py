"""Checks of the user's own columns beside the trace: none may be the label itself.

A column that repeats the label makes any guarantee look easy and says nothing about new answers.
`require_no_label(training, label)` refuses it.
"""

import polars as pl

from tracecal.answers.record import ALSO
from tracecal.calibration.ranking import single_auroc
from tracecal.calibrator.recommendation import count_smaller_class
from tracecal.calibrator.training_set import TrainingSet
from tracecal.errors import InputError
from tracecal.io.log import LOGGER

LABEL_PATHS = ("correct", "label")  # where a label is read unless its path is named
MIN_OF_CLASS = 10  # right and wrong answers that a column must equal to be taken for the label
SUSPICIOUS_AUROC = 0.99


def require_no_label(training: TrainingSet, label: str | None = None) -> None:
    """Raise `InputError` if an own column is the label; warn if it nearly determines the label.

    Parameters
    ----------
    training : TrainingSet
        The labelled answers.
    label : str, optional
        The path that their labels were read from.
    """
    label_paths = LABEL_PATHS if label is None else (label,)
    for name, path in training.own_columns.items():
        if path in label_paths:
            raise InputError(_refusal(name, path, "is the path of the label"))
        column = f"{ALSO}{name}"
        rows = training.frame.select("correct", value=pl.col(column)).drop_nulls()
        correct, value = rows["correct"], rows["value"]
        if count_smaller_class(rows) < MIN_OF_CLASS:
            continue
        if (value == correct.cast(pl.Float64)).all():
            what = f"equals the label in all {rows.height} labelled answers"
            raise InputError(_refusal(name, path, what))
        auroc = single_auroc(value.to_numpy(), correct.to_numpy())
        if auroc is not None and auroc > SUSPICIOUS_AUROC:
            LOGGER.warning(
                "--also %s=%s tells right from wrong labels nearly perfectly (AUROC %.3f): what is "
                "guaranteed rests on it, and holds only if new answers get it before they are "
                "judged",
                *(name, path, auroc),
            )


def _refusal(name: str, path: str, what: str) -> str:
    return (
        f"--also {name}={path} {what}, so that new answers have no such column, or are judged "
        "already: leave it out."
    )
