"""A calibrated probability for every answer of a file, by the workflow's own code."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from tracecal.errors import InputError
from tracecal.outside.agree import open_questions, require_same_kind
from tracecal.outside.fitted import Fitted, interval
from tracecal.outside.inputs import input_bounds, inputs
from tracecal.progress import LOGGER

SCORED = {
    "example_id": pl.String,
    "probability": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "keep": pl.Boolean,
    "reason": pl.String,
}


def score_answers(
    answers: pl.DataFrame, fitted: Fitted, error_rate: float | None = None
) -> pl.DataFrame:
    """The columns of `SCORED`, a row per answer of `answers` (columns of `RECORDS`).

    `probability` lies in [`lower`, `upper`], which holds what exact entropies would have given.
    What cannot be computed is null, with its `reason`. Raises `InputError` where the answers are
    not of the calibrator's model and kind, or it reads more than traces.
    """
    require_same_kind(answers, fitted.fitted_on)
    for question in open_questions(answers, fitted.fitted_on):
        LOGGER.warning("%s", question)
    answers = answers.sort("example_id")
    columns = list(fitted.inputs)
    known = inputs(answers)
    if missing := [name for name in columns if name not in known.columns]:
        raise InputError(
            f"{fitted.estimator} reads {missing[0]}, which answers' traces do not give: it can be "
            "computed in the workflow alone. Choose trace_plus or another estimator of traces."
        )
    usable = known.select(pl.all_horizontal(pl.col(columns).is_not_null())).to_series().to_numpy()
    rows = np.flatnonzero(usable)
    x = _values(known, columns, rows)
    found = {"probability": fitted.final.predict(x)}
    low, high = (_values(bound, columns, rows) for bound in input_bounds(answers))
    found["lower"], found["upper"] = interval(fitted.final, low, high)
    kept = fitted.keeps(x, error_rate) if error_rate is not None else None
    scored = {name: _spread(values, rows, answers.height) for name, values in found.items()}
    keep = [None] * answers.height
    for place, row in enumerate(rows if kept is not None else ()):
        keep[row] = bool(kept[place])
    reason = pl.Series(answers["lacks"]).fill_null("undefined for this answer")
    return pl.DataFrame(
        {
            "example_id": answers["example_id"],
            **scored,
            "keep": keep,
            "reason": [None if fine else why for fine, why in zip(usable, reason, strict=True)],
        },
        schema=SCORED,
    )


def _values(frame: pl.DataFrame, columns: Sequence[str], rows: np.ndarray) -> np.ndarray:
    """The columns' values at `rows`, [rows, columns]; NaN where null."""
    return frame.select(columns).cast(pl.Float64).to_numpy()[rows].reshape(len(rows), len(columns))


def _spread(values: np.ndarray, rows: np.ndarray, height: int) -> pl.Series:
    whole = np.full(height, np.nan)
    whole[rows] = values
    return pl.Series(whole, nan_to_null=True)
