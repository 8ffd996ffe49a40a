"""What the first labels of a run say, while the run still goes on."""

from pathlib import Path

import polars as pl

from tracecal.io.files import read_parquet


def describe_first_labels(labels: Path) -> str:
    """A sentence on labels/<model>/<task>.parquet: the number of correct answers.

    Raises `InputError` where the labels cannot be read.
    """
    model, task = labels.parent.name, labels.stem
    correct = read_parquet(labels, ["example_id", "correct"])["correct"]
    traces = labels.parents[2] / f"traces/{model}/{task}.arrow"
    cut = (pl.read_ipc(traces, columns=["finish_reason"])["finish_reason"] == "length").sum()
    counts = (
        f"First labels: {correct.sum()} of {len(correct)} answers of {model} to {task} are correct"
    )
    if cut > len(correct) / 2:
        counts += (
            f"; {cut} of all ran to the limit of tokens: the token that ends the model's turns may "
            "be undeclared (`show_prompt` prints those that are declared)"
        )
    return f"{counts}."
