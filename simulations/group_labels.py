"""Does any estimator gain from what the members of a group say about one another?

In a planted task a coin decides whether a whole group is right, and all scores and features belong
to the group: nothing predicts groups that the fit has not seen. Each run plants a task and tests
whether an estimator's AUROC on the evaluation parts exceeds one half, as it should in half of the
runs. If members of a group stood on both sides, it would in nearly all.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from simulations.claims import Claim
from tracecal.estimators.registry import ESTIMATORS as REGISTERED
from tracecal.fits.predictions import calibrate_all
from tracecal.statistics.ranking_metrics import single_auroc
from tracecal.statistics.splits import make_splits

GROUPS, MEMBERS, SPLITS = 30, 5, 4
# An estimator with one feature, and those with most.
LABELS = {"trace": "a scalar", "trace_plus": "TRACE+", "entropy_sentinel": "Entropy Sentinel"}
ESTIMATORS = {LABELS[entry.id]: entry.inputs for entry in REGISTERED if entry.id in LABELS}


def plant_task(rng: np.random.Generator) -> pl.DataFrame:
    """Make answers whose labels and columns are properties of their groups."""
    group = np.repeat(np.arange(GROUPS), MEMBERS)
    columns = sorted({name for inputs in ESTIMATORS.values() for name in inputs})
    return pl.DataFrame(
        {
            "example_id": [f"{number:04}" for number in range(len(group))],
            "group_id": group,
            "correct": rng.permutation(GROUPS)[group] % 2 == 0,
            **{name: rng.normal(size=GROUPS)[group] for name in columns},
        }
    )


def measure_gains(answers: pl.DataFrame, examples: pl.DataFrame, seed: int) -> dict[str, float]:
    """Return the mean AUROC of each estimator over splits of `examples`, less one half."""
    splits = make_splits(examples, "task", seed, SPLITS, 0.35)
    predictions, _ = calibrate_all(answers, splits, ESTIMATORS, "platt")
    judged = predictions.join(answers.select("example_id", "correct"), on="example_id")
    gains = {}
    for (name,), rows in judged.partition_by("estimator", as_dict=True).items():
        values = [
            single_auroc(part["probability"].to_numpy(), part["correct"].to_numpy())
            for part in rows.partition_by("split")
        ]
        gains[name] = float(np.mean([value for value in values if value is not None])) - 0.5
    return gains


def claims(runs: int) -> Iterator[Claim]:
    rng = np.random.default_rng(0)
    n_above = dict.fromkeys(ESTIMATORS, 0)
    for run in range(runs):
        answers = plant_task(rng)
        examples = answers.select("example_id", "group_id")
        for name, gain in measure_gains(answers, examples, run).items():
            n_above[name] += gain > 0
    for name, count in n_above.items():
        yield Claim(f"no gain from what a group's members share: {name}", runs, count, 0.5)
