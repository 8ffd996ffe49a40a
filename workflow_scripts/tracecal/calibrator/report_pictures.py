"""What the pages of report and card draw: reliability, risk against coverage, and scores."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy.special import betaincinv

from tracecal.calibration.probability_metrics import bin_index
from tracecal.calibrator.decision import percent
from tracecal.calibrator.schema import ErrorRateControl
from tracecal.calibrator.training_set import TrainingSet

BINS, MIN_IN_BIN, MAX_BINS = 20, 12, 10
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 340, 236, 40, 10, 12, 38
QUARTERS = (0, 0.25, 0.5, 0.75, 1)
AXIS_ENDS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # shares of wrong answers


def report_pictures(
    training: TrainingSet,
    predictions: pl.DataFrame,
    estimator: str,
    control: ErrorRateControl,
) -> dict[str, Any]:
    """What is drawn of an estimator, by the answers that no estimator is chosen by.

    `bins`: of equally many answers mean probability, share correct and its 95 % interval; `scores`:
    right and wrong answers by probability, in units of twice the `most`; both by `predictions`.
    Beside these, what `draw_risk` gives.
    """
    answers = training.frame.join(training.compared, on="example_id", how="semi")
    held_out = predictions.filter(estimator=estimator).select("example_id", "probability")
    rows = answers.join(held_out, on="example_id", validate="1:1")
    rows = rows.sort("probability", "example_id")
    count = max(1, min(MAX_BINS, rows.height // MIN_IN_BIN))
    parts = np.array_split(np.arange(rows.height), count)
    index = bin_index(rows["probability"].to_numpy(), BINS)
    right = rows["correct"].to_numpy()
    counts = [np.bincount(index[kind], minlength=BINS) for kind in (right, ~right)]
    most = max(1, int(np.max(counts)))
    return {
        "bins": [_bin(rows[part]) for part in parts if len(part)],
        "scores": (np.transpose(counts) / (2 * most)).tolist(),
        "most": most,
        "n": rows.height,
    } | draw_risk(control)


def draw_risk(control: ErrorRateControl) -> dict[str, Any]:
    """What is drawn of risk against coverage, by the ranking of the answers that tested thresholds.

    `curve`: share kept and share wrong of the kept; `marks`: those with a guarantee; `top`: the
    share at which that axis ends, `risk_ticks` what stands beside it.
    """
    marks = [
        {name: getattr(row, name) for name in ("error_rate", "coverage", "error")}
        | {"share": row.kept / row.n}
        for row in control.thresholds
        if row.threshold is not None
    ]
    curve = sorted({*control.risk_coverage, *((mark["share"], mark["error"]) for mark in marks)})
    highest = max([0.0, *(wrong for _, wrong in curve), *(mark["error_rate"] for mark in marks)])
    top = next(end for end in AXIS_ENDS if end >= highest)
    return {
        "curve": " ".join(f"{across(kept)},{up(min(1, wrong / top))}" for kept, wrong in curve),
        "top": top,
        "risk_ticks": [(up(share), f"{100 * share * top:.3g}") for share in QUARTERS],
        "marks": marks,
    }


def describe_reliability(bins: Sequence[Mapping[str, float]]) -> str:
    """Whether the intervals of the shares correct hold the probabilities, and where they miss.

    >>> describe_reliability([{"p": 0.3, "share": 0.15, "low": 0.05, "high": 0.25}])
    'Off the diagonal at 30 %, where 15 % are right: too high'
    """
    missed = [bin for bin in bins if not bin["low"] <= bin["p"] <= bin["high"]]
    if not missed:
        return "Probabilities agree with the labels: each interval meets the diagonal"
    worst = max(missed, key=lambda bin: abs(bin["p"] - bin["share"]))
    verdict = "too high" if worst["p"] > worst["share"] else "too low"
    where = f"at {percent(worst['p'])}, where {percent(worst['share'])} are right: {verdict}"
    if len(missed) == 1:
        return f"Off the diagonal {where}"
    return f"Off the diagonal in {len(missed)} of {len(bins)} dots, most {where}"


def _bin(rows: pl.DataFrame) -> dict[str, float]:
    """The interval is Clopper and Pearson's, of as many answers as there are questions."""
    n, share = rows["rank"].n_unique(), float(rows["correct"].mean())
    hits = share * n
    low = float(betaincinv(hits, n - hits + 1, 0.025)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 0.975)) if hits < n else 1.0
    return {"p": float(rows["probability"].mean()), "share": share, "low": low, "high": high}


def axes() -> dict[str, Any]:
    """The size of a picture, and where shares are on its axes, as templates take them."""
    return {"across": across, "up": up, "width": WIDTH, "height": HEIGHT}


def across(share: float) -> float:
    """Where a share from 0 to 1 is on the horizontal axis of a picture."""
    return round(LEFT + (WIDTH - LEFT - RIGHT) * share, 1)


def up(share: float) -> float:
    """Where a share from 0 to 1 is on the vertical axis."""
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share, 1)
