"""How often is an estimator called better or worse that is exactly as good as the best baseline?

Each run draws a task. Answers are right with a probability that a hidden strength decides; the best
baseline and "TRACE+" see that strength through noises of their own but of one kind, a third score
through more noise. Both go through the whole chain: random splits, calibration, metrics, averages,
the paired bootstrap. Their true difference is zero, and the claim is broken where the interval
leaves out zero.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl
from scipy.special import expit

from tracecal.analyse.averages import averages
from tracecal.analyse.bootstrap import RESAMPLED, resample_metrics
from tracecal.analyse.improvements import gains, improvements
from tracecal.calibrate.metrics import all_metrics
from tracecal.calibrate.predict import calibrate_all
from tracecal.calibrate.splits import make_splits
from validate.claims import Claim

GROUPS, SPLITS, RESAMPLES, LEVEL = 150, 20, 400, 0.95
NOISE = {"best": 1.0, "trace_plus": 1.0, "poor": 3.0}
STUDIES = {"main": {"model": "m", "tasks": ["t"]}}


def planted(rng: np.random.Generator, members: int) -> pl.DataFrame:
    """Answers in groups of `members` that share strength, noise and label."""
    strength = rng.normal(size=GROUPS)
    correct = rng.uniform(size=GROUPS) < expit(2 * strength)
    scores = {name: strength + sd * rng.normal(size=GROUPS) for name, sd in NOISE.items()}
    group = np.repeat(np.arange(GROUPS), members)
    return pl.DataFrame(
        {
            "example_id": [f"{place:04}" for place in range(len(group))],
            "group_id": group.astype(str),
            "correct": correct[group],
            **{f"scores.{name}": values[group] for name, values in scores.items()},
        }
    )


def interval_of(answers: pl.DataFrame, seed: int) -> dict[str, tuple[float, float]]:
    """By metric, where the interval of TRACE+'s improvement begins and ends."""
    splits = make_splits(answers.select("example_id", "group_id"), "t", seed, SPLITS, 0.35)
    inputs = {name: [f"scores.{name}"] for name in NOISE}
    predictions, _ = calibrate_all(answers, splits, inputs, "platt")
    scores = answers.select("example_id", *(pl.col(f"scores.{n}").alias(n) for n in NOISE))
    scope = {"model": "m", "task": "t", "estimators": list(NOISE)}
    judged = answers.select("example_id", "correct")
    numbers = list(range(SPLITS))
    measured = all_metrics(predictions, judged, scores, splits=numbers, ece_bins=15, **scope)
    drawn = resample_metrics(
        predictions,
        answers.select("example_id", "group_id", "correct"),
        scores,
        seed=seed,
        resamples=RESAMPLES,
        **scope,
    )
    gained = gains(averages(measured, STUDIES), ["best", "poor"])
    found = improvements(gained, drawn, ["best", "poor"], STUDIES, LEVEL)
    rows = found.filter(pl.col("task") == "t", pl.col("metric").is_in(RESAMPLED))
    return {row["metric"]: (row["low"], row["high"]) for row in rows.iter_rows(named=True)}


def claims(runs: int) -> Iterator[Claim]:
    for members in (1, 3):
        rng = np.random.default_rng(members)
        broken = dict.fromkeys(RESAMPLED, 0)
        for run in range(runs):
            for metric, (low, high) in interval_of(planted(rng, members), run).items():
                broken[metric] += low > 0 or high < 0
        for metric, count in broken.items():
            named = f"an equal of the best baseline is neither better nor worse: {metric}"
            yield Claim(f"{named}, groups of {members}", runs, count, 1 - LEVEL)
