"""What the first labels of a run say, minutes before its end."""

from pathlib import Path

import numpy as np
import polars as pl

from tracecal.calibration.ranking import weighted_auroc
from tracecal.io.files import read_parquet


def first_finding(labels: Path) -> str:
    """How many answers of labels/<model>/<task>.parquet are correct, and how well the joint
    probability of their tokens tells these from the others.

    Raises `InputError` where the labels cannot be read.
    """
    model, task = labels.parent.name, labels.stem
    path = labels.parents[2] / f"traces/{model}/{task}.arrow"
    log_probability = -pl.col("surprisal").list.sum()
    traces = pl.read_ipc(path, columns=["example_id", "surprisal"]).select(
        "example_id", log_probability=log_probability
    )
    judged = read_parquet(labels, ["example_id", "correct"]).join(traces, on="example_id")
    correct = judged["correct"].to_numpy()
    told = (
        f"First labels: {correct.sum()} of {len(correct)} answers of {model} to {task} are correct"
    )
    if correct.all() or not correct.any():
        return f"{told}."
    ranking = weighted_auroc(
        judged["log_probability"].to_numpy(), correct, np.ones((1, len(correct)))
    ).item()
    return (
        f"{told}; the joint probability of their tokens ranks {ranking:.0%} of (correct, "
        "incorrect) pairs correctly. Calibrated comparisons follow at the end."
    )
