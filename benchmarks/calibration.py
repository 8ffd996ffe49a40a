"""Calibrating and measuring one (model, task), beside scikit-learn's fits and metrics one by one."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from benchmarks.timing import Row, paired
from support import metrics_one_by_one as one_by_one
from tracecal.fits.predictions import calibrate_all
from tracecal.statistics.metrics import all_metrics
from tracecal.statistics.splits import make_splits

SIZES = (300, 1000, 3000)
SCALARS, LEARNED, SPLITS, BINS = 30, 15, 20, 15
FEATURES = [f"features.f{place}" for place in range(8)]
SCORES = [f"scores.s{place}" for place in range(SCALARS)]
# As many estimators as the registry's, a third of them with two to eight features.
ESTIMATORS = {name.removeprefix("scores."): [name] for name in SCORES} | {
    f"learned{place}": FEATURES[: 2 + place % 7] for place in range(LEARNED)
}


def made_up(n: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Answers with scores and features that say something of correctness, and their splits."""
    rng = np.random.default_rng(n)
    ids = [f"example-{place:05}" for place in range(n)]
    correct = rng.random(n) < 0.6
    columns = {name: rng.normal(size=n) + correct * rng.random() for name in FEATURES + SCORES}
    answers = pl.DataFrame({"example_id": ids, "correct": correct, **columns})
    return answers, make_splits(
        answers.select("example_id", group_id="example_id"), "task", 0, SPLITS, 0.35
    )


def one_at_a_time(answers: pl.DataFrame, predicted: dict) -> list[dict[str, float]]:
    """The metrics of each estimator and split."""
    correct = answers["correct"].to_numpy()
    return [
        one_by_one.metrics(
            probability[rows],
            answers[f"scores.{name}"].to_numpy()[rows] if name[0] == "s" else probability[rows],
            correct[rows],
            BINS,
        )
        for (name, _), (probability, rows) in predicted.items()
    ]


def rows() -> Iterator[Row]:
    """Fits with predictions, and metrics, of 45 estimators in 20 splits."""
    for n in SIZES:
        answers, splits = made_up(n)
        repeats = 3 if n < 3000 else 1
        yield paired(
            f"calibrate {len(ESTIMATORS)} estimators, {SPLITS} splits, {n:,} answers",
            lambda a=answers, s=splits: calibrate_all(a, s, ESTIMATORS, "platt"),
            lambda a=answers, s=splits: one_by_one.predicted(a, s, ESTIMATORS),
            "scikit-learn, one by one",
            items=len(ESTIMATORS) * SPLITS,
            unit="fits",
            repeats=repeats,
        )
        predictions, _ = calibrate_all(answers, splits, ESTIMATORS, "platt")
        predicted = one_by_one.predicted(answers, splits, ESTIMATORS)
        settings = {
            "scores": answers.select("example_id", pl.col(SCORES).name.map(lambda s: s[7:])),
            "estimators": list(ESTIMATORS),
            "splits": list(range(SPLITS)),
            "ece_bins": BINS,
        }
        yield paired(
            f"measure {len(ESTIMATORS)} estimators, {SPLITS} splits, {n:,} answers",
            lambda a=answers, p=predictions, s=settings: all_metrics(
                p, a.select("example_id", "correct"), model="m", task="t", **s
            ),
            lambda a=answers, p=predicted: one_at_a_time(a, p),
            "scikit-learn and SciPy, one by one",
            items=len(ESTIMATORS) * SPLITS,
            unit="sets",
            repeats=repeats,
        )
