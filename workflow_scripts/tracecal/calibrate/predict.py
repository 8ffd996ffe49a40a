"""Calibrated probabilities of every estimator in every split."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import polars as pl

from tracecal.calibrate.protocol import Calibrator, Method, as_json, fit
from tracecal.progress import track

PREDICTIONS = {
    "estimator": pl.String,
    "split": pl.Int64,
    "example_id": pl.String,
    "probability": pl.Float64,
}


def calibrate_all(
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    estimators: Mapping[str, Sequence[str]],
    method: Method,
    uncalibrated: Collection[str] = (),
) -> tuple[pl.DataFrame, dict[str, object]]:
    """Fit each estimator on each split's calibration part; predict its evaluation part.

    `answers` holds `example_id`, `correct` and the columns that `estimators` (id -> columns)
    name. A row with a null among an estimator's columns is left out of its fit and prediction.
    Those of `uncalibrated` are fitted to nothing: their one column is the probability.
    Returns the predictions frame and, per estimator, the calibrators as plain JSON: one per
    split, and `final` on all labels.
    """
    answers = answers.sort("example_id")
    calibration = pl.col("example_id").filter(part="calibration")
    parts = {
        split: answers["example_id"].is_in(ids).to_numpy()
        for split, ids in splits.group_by("split").agg(calibration).sort("split").iter_rows()
    }
    frames, fitted = [pl.DataFrame(schema=PREDICTIONS)], {}
    for name, columns in track(estimators.items(), len(estimators), "calibrating", "estimators"):
        usable = answers.select(pl.all_horizontal(pl.col(columns).is_not_null())).to_series()
        x = answers.select(columns).cast(pl.Float64).to_numpy()
        keep, correct = usable.to_numpy(), answers["correct"].to_numpy()
        how = "identity" if name in uncalibrated else method
        calibrators = {
            split: fit(x[keep & part], correct[keep & part], how) for split, part in parts.items()
        }
        for split, calibrator in calibrators.items():
            rows = keep & ~parts[split]
            frames.append(_predictions(name, split, answers["example_id"], x, rows, calibrator))
        fitted[name] = {
            "features": [column.split(".", 1)[-1] for column in columns],
            "splits": {str(split): as_json(one) for split, one in calibrators.items()},
            "final": as_json(fit(x[keep], correct[keep], how)),
        }
    return pl.concat(frames), fitted


def _predictions(
    name: str, split: int, ids: pl.Series, x: np.ndarray, rows: np.ndarray, calibrator: Calibrator
) -> pl.DataFrame:
    probability = calibrator.predict(x[rows])
    columns = {
        "estimator": [name] * len(probability),
        "split": [split] * len(probability),
        "example_id": ids.filter(rows),
        "probability": probability,
    }
    return pl.DataFrame(columns, schema=PREDICTIONS)
