"""What the first labels of a run say, while the run still goes on."""

from pathlib import Path

import numpy as np
import polars as pl

from tracecal.calibration.ranking import weighted_auroc
from tracecal.io.files import read_parquet


def describe_first_labels(labels: Path) -> str:
    """A sentence on labels/<model>/<task>.parquet: the number of correct answers, and the AUROC of
    the joint probability of their tokens.

    Raises `InputError` where the labels cannot be read.
    """
    model, task = labels.parent.name, labels.stem
    traces = pl.read_ipc(
        labels.parents[2] / f"traces/{model}/{task}.arrow",
        columns=["example_id", "surprisal", "finish_reason"],
    ).select("example_id", "finish_reason", log_probability=-pl.col("surprisal").list.sum())
    judged = read_parquet(labels, ["example_id", "correct"]).join(traces, on="example_id")
    correct = judged["correct"].to_numpy()
    counts = (
        f"First labels: {correct.sum()} of {len(correct)} answers of {model} to {task} are correct"
    )
    cut = judged.filter(finish_reason="length").height
    if cut > len(correct) / 2:
        counts += (
            f"; {cut} of all ran to the limit of tokens: the token that ends the model's turns may "
            "be undeclared (`show_prompt` prints those that are declared)"
        )
    if correct.all() or not correct.any():
        return f"{counts}."
    log_probability, weights = judged["log_probability"].to_numpy(), np.ones((1, len(correct)))
    auroc = weighted_auroc(log_probability, correct, weights).item()
    return (
        f"{counts}; the joint probability of their tokens ranks {100 * auroc:.0f} % of (correct, "
        "incorrect) pairs correctly. Calibrated comparisons follow at the end."
    )
