"""Calibrated probabilities of every estimator in every split."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.calibrate.protocol import Calibrator, Method, as_json, fit_all

PREDICTIONS = {
    "estimator": pl.String,
    "split": pl.Int64,
    "example_id": pl.String,
    "probability": pl.Float64,
}


class _Inputs(NamedTuple):
    """An estimator's columns [n, d], and a mask [n] of the answers that have all of them."""

    x: np.ndarray
    complete: np.ndarray


def calibrate_all(
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    estimators: Mapping[str, Sequence[str]],
    method: Method,
    uncalibrated: Collection[str] = (),
) -> tuple[pl.DataFrame, dict[str, object]]:
    """Fit each estimator on each split's calibration part and predict its evaluation part.

    `answers` holds `example_id`, `correct` and the columns named by `estimators` (id -> columns).
    A row with a null among an estimator's columns is left out of its fit and prediction. The
    `uncalibrated` estimators are not fitted: their only column is the probability. Returns the
    predictions, by estimator, split and example, and per estimator the calibrators as plain JSON:
    one per split, and `final`, fitted on all labels.
    """
    answers = answers.sort("example_id")
    parts = _calibration_parts(answers["example_id"], splits)
    inputs = {name: _inputs(answers.select(columns)) for name, columns in estimators.items()}
    correct = answers["correct"].to_numpy()
    fitted: dict[str, dict[int, Calibrator]] = {}
    final: dict[str, Calibrator] = {}
    for how in (method, "identity"):
        names = [name for name in estimators if (name in uncalibrated) == (how == "identity")]
        fits = iter(_fit(names, inputs, correct, [*parts.values(), np.ones_like(correct)], how))
        for name in names:
            fitted[name] = {split: next(fits) for split in parts}
            final[name] = next(fits)
    predictions = _predictions(answers["example_id"], parts, inputs, fitted)
    return predictions, {
        name: {
            "features": [column.split(".", 1)[-1] for column in columns],
            "splits": {str(split): as_json(fit) for split, fit in fitted[name].items()},
            "final": as_json(final[name]),
        }
        for name, columns in estimators.items()
    }


def _calibration_parts(ids: pl.Series, splits: pl.DataFrame) -> dict[int, np.ndarray]:
    """By split, a mask [n] of the `ids` that calibrate."""
    calibration = pl.col("example_id").filter(part="calibration")
    groups = splits.group_by("split").agg(calibration).sort("split")
    return {split: ids.is_in(members).to_numpy() for split, members in groups.iter_rows()}


def _inputs(columns: pl.DataFrame) -> _Inputs:
    complete = columns.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
    return _Inputs(columns.cast(pl.Float64).to_numpy(), complete.to_numpy())


def _fit(
    names: Sequence[str],
    inputs: Mapping[str, _Inputs],
    correct: np.ndarray,
    parts: Sequence[np.ndarray],
    method: Method,
) -> list[Calibrator]:
    """The calibrators of each name's complete answers in each of `parts` (masks [n]), in order."""
    rows = [(inputs[name].x, inputs[name].complete & part) for name in names for part in parts]
    return fit_all([(x[used], correct[used]) for x, used in rows], method)


def _predictions(
    ids: pl.Series,
    parts: Mapping[int, np.ndarray],
    inputs: Mapping[str, _Inputs],
    fitted: Mapping[str, Mapping[int, Calibrator]],
) -> pl.DataFrame:
    """`PREDICTIONS` of each split's complete answers outside its calibration part."""
    keys = [(name, split) for name in inputs for split in parts]
    rows = [np.flatnonzero(inputs[name].complete & ~parts[split]) for name, split in keys]
    probabilities = [
        fitted[name][split].predict(inputs[name].x[used])
        for (name, split), used in zip(keys, rows, strict=True)
    ]
    if not keys:
        return pl.DataFrame(schema=PREDICTIONS)
    of_key = np.repeat(np.arange(len(keys)), [len(used) for used in rows])
    key_rows = pl.DataFrame(keys, schema=["estimator", "split"], orient="row")
    columns = {
        "example_id": ids.gather(np.concatenate(rows)),
        "probability": np.concatenate(probabilities),
    }
    return key_rows[of_key].with_columns(**columns).cast(PREDICTIONS)
