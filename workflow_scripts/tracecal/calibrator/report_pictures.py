"""What the pages of report and card draw: reliability, errors that remain, and scores."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from tracecal.calibrator.guarantee import error_interval
from tracecal.calibrator.schema import ErrorRateControl, OverallThreshold
from tracecal.calibrator.training_set import TrainingSet
from tracecal.statistics.percentages import percent, rate_text
from tracecal.statistics.probability_metrics import bin_index

BINS, MIN_IN_BIN, MAX_BINS = 20, 12, 10
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 340, 236, 40, 10, 12, 38
QUARTERS = (0, 0.25, 0.5, 0.75, 1)
AXIS_ENDS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # shares of wrong answers


def report_pictures(
    training: TrainingSet,
    predictions: pl.DataFrame,
    estimator: str,
    control: ErrorRateControl,
    error_rate: float | None,
    overall: OverallThreshold | None,
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
    highest = max(1, int(np.max(counts)))
    return {
        "bins": [_bin(rows[part]) for part in parts if len(part)],
        "scores": (np.transpose(counts) / (2 * highest)).tolist(),
        "most": highest,
        "n": rows.height,
    } | draw_risk(control, error_rate, overall)


def draw_risk(
    control: ErrorRateControl,
    error_rate: float | None = None,
    overall: OverallThreshold | None = None,
) -> dict[str, Any]:
    """What is drawn of both guarantees: the share that people check against errors that remain.

    `curve` is that of the answers that tested thresholds, in their ranking; `marks` are those with
    a guarantee, `limits` the lines of the chosen ones, with words, and `risk_ticks` what stands
    beside the vertical axis.
    """
    rows = [row for row in control.thresholds if row.threshold is not None]
    mended = [row for row in control.overall if row.threshold is not None]
    pairs = {*control.risk_coverage, *((row.kept / row.n, row.error) for row in rows)}
    points = [*sorted((1 - share, share * error) for share, error in pairs), (1.0, 0.0)]
    curve = np.transpose(points)
    marks = [
        (1 - row.kept / row.n, row.wrong / row.n, "chosen" if row.error_rate == error_rate else "")
        for row in rows
    ] + [
        (
            1 - row.coverage,
            float(np.interp(1 - row.coverage, *curve)),
            "overall chosen" if row == overall else "overall",
        )
        for row in mended
    ]
    limits = []
    if error_rate in [row.error_rate for row in rows]:
        limits.append((error_rate, 0.0, "", f"{rate_text(error_rate)} of the kept"))
    if overall in mended:
        rate = overall.error_rate
        limits.append((rate, rate, "overall", f"{rate_text(rate)} of all"))
    highest = max([*curve[1], *(start for start, *_ in limits)])
    top = next(end for end in AXIS_ENDS if end >= highest)
    return {
        "curve": " ".join(f"{across(x)},{up(y / top)}" for x, y in points),
        "risk_ticks": [(up(share), f"{100 * share * top:.3g}") for share in QUARTERS],
        "marks": [
            {"x": across(checked), "y": up(leaving / top), "kind": kind}
            for checked, leaving, kind in marks
        ],
        "limits": [
            {"start": up(start / top), "end": up(end / top), "kind": kind, "words": words}
            for start, end, kind, words in limits
        ],
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
    low, high = error_interval(share * n, n, 0.05)
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
