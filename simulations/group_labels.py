"""Does any estimator gain from what only the members of a group tell of one another?

A task is planted in which an answer is right or wrong with its whole group, by a coin, and every
score and feature is the group's own: nothing tells of a group that the fit has not seen. Each run
plants one and asks whether an estimator's AUROC over the evaluation parts exceeds one half, as it
should in half of the runs; where members of a group stood on both sides it would in nearly all.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from simulations.claims import Claim
from tracecal.calibration.predictions import calibrate_all
from tracecal.calibration.ranking import single_auroc
from tracecal.calibration.splits import make_splits
from tracecal.estimators.registry import ESTIMATORS as REGISTERED

GROUPS, MEMBERS, SPLITS = 30, 5, 4
# One feature, and the estimators that fit most of them.
NAMED = {"trace": "a scalar", "trace_plus": "TRACE+", "entropy_sentinel": "Entropy Sentinel"}
ESTIMATORS = {NAMED[one.id]: one.inputs for one in REGISTERED if one.id in NAMED}


def planted(rng: np.random.Generator) -> pl.DataFrame:
    """Answers whose label and whose every column are properties of their group."""
    group = np.repeat(np.arange(GROUPS), MEMBERS)
    columns = sorted({name for named in ESTIMATORS.values() for name in named})
    return pl.DataFrame(
        {
            "example_id": [f"{place:04}" for place in range(len(group))],
            "group_id": group,
            "correct": rng.permutation(GROUPS)[group] % 2 == 0,
            **{name: rng.normal(size=GROUPS)[group] for name in columns},
        }
    )


def gains(answers: pl.DataFrame, examples: pl.DataFrame, seed: int) -> dict[str, float]:
    """The mean AUROC of each estimator over splits of `examples`, less one half."""
    splits = make_splits(examples, "task", seed, SPLITS, 0.35)
    predictions, _ = calibrate_all(answers, splits, ESTIMATORS, "platt")
    judged = predictions.join(answers.select("example_id", "correct"), on="example_id")
    found = {}
    for (name,), own in judged.partition_by("estimator", as_dict=True).items():
        values = [
            single_auroc(part["probability"].to_numpy(), part["correct"].to_numpy())
            for part in own.partition_by("split")
        ]
        found[name] = float(np.mean([value for value in values if value is not None])) - 0.5
    return found


def claims(runs: int) -> Iterator[Claim]:
    rng = np.random.default_rng(0)
    above = dict.fromkeys(ESTIMATORS, 0)
    for run in range(runs):
        answers = planted(rng)
        for name, gain in gains(answers, answers.select("example_id", "group_id"), run).items():
            above[name] += gain > 0
    for name, count in above.items():
        yield Claim(f"no gain from what a group's members share: {name}", runs, count, 0.5)
