"""What the report's page draws: reliability, risk against coverage, and scores."""

from typing import Any

import numpy as np
import polars as pl
from scipy.special import betaincinv

from tracecal.calibration.fits import Fit
from tracecal.calibration.probability_metrics import bin_index
from tracecal.calibrator.training_set import TrainingSet

BINS, MIN_IN_BIN, MAX_BINS = 20, 12, 10
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 340, 236, 40, 10, 12, 38
AXIS_ENDS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # shares of wrong answers


def report_pictures(
    training: TrainingSet,
    predictions: pl.DataFrame,
    tested_fit: Fit,
    estimator: str,
    guarantees: pl.DataFrame,
) -> dict[str, Any]:
    """What is drawn of an estimator, by the answers that no estimator is chosen by.

    `bins`: of equally many answers mean probability, share correct and its 95 % interval; `scores`:
    right and wrong answers by probability, in units of twice the `most`; both by `predictions`.
    `curve`: share kept and share wrong of the kept, by the tested fit; `marks`: its `guarantees`;
    `top`: the share at which that axis ends.
    """
    evaluation = training.first_split.filter(part="evaluation").select("example_id")
    answers = training.frame.join(evaluation, on="example_id", how="semi")
    held_out = predictions.filter(estimator=estimator).select("example_id", "probability")
    rows = answers.join(held_out, on="example_id", validate="1:1")
    rows = rows.sort("probability", "example_id")
    count = max(1, min(MAX_BINS, rows.height // MIN_IN_BIN))
    parts = np.array_split(np.arange(rows.height), count)
    index = bin_index(rows["probability"].to_numpy(), BINS)
    right = rows["correct"].to_numpy()
    counts = [np.bincount(index[kind], minlength=BINS) for kind in (right, ~right)]
    most = max(1, int(np.max(counts)))
    tested = answers.drop_nulls(training.estimators[estimator])
    x = tested.select(training.estimators[estimator]).to_numpy()
    curve = risk_curve(tested_fit.predict(x), tested["correct"].to_numpy())
    marks = guarantees.drop_nulls("threshold")
    highest = max([0.0, *(wrong for _, wrong in curve[-1:]), *marks["error_rate"]])
    top = next(end for end in AXIS_ENDS if end >= highest)
    return {
        "bins": [_bin(rows[part]) for part in parts if len(part)],
        "scores": (np.transpose(counts) / (2 * most)).tolist(),
        "most": most,
        "curve": " ".join(f"{across(kept)},{up(min(1, wrong / top))}" for kept, wrong in curve),
        "top": top,
        "marks": marks.rows(named=True),
        "n": rows.height,
    }


def _bin(rows: pl.DataFrame) -> dict[str, float]:
    """The interval is Clopper and Pearson's, of as many answers as there are questions."""
    n, share = rows["group_id"].n_unique(), float(rows["correct"].mean())
    hits = share * n
    low = float(betaincinv(hits, n - hits + 1, 0.025)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 0.975)) if hits < n else 1.0
    return {"p": float(rows["probability"].mean()), "share": share, "low": low, "high": high}


def risk_curve(proba: np.ndarray, correct: np.ndarray) -> list[tuple[float, float]]:
    """Share kept and share wrong of the kept, at each different probability."""
    order = np.argsort(-proba, kind="stable")
    last = np.append(np.diff(proba[order]) != 0, True)
    kept = np.arange(1, len(order) + 1)
    wrong = np.cumsum(~correct[order]) / kept
    return [*zip((kept / len(order))[last].tolist(), wrong[last].tolist(), strict=True)]


def across(share: float) -> float:
    """Where a share from 0 to 1 is on the horizontal axis of a picture."""
    return round(LEFT + (WIDTH - LEFT - RIGHT) * share, 1)


def up(share: float) -> float:
    """Where a share from 0 to 1 is on the vertical axis."""
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share, 1)
