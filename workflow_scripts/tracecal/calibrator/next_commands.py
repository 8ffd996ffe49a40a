"""The commands that may follow `tracecal calibrate`, as they are typed."""

import shlex
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from tracecal.answers.reading import Reading
from tracecal.calibrator.schema import CalibrationData
from tracecal.estimators.registry import LOG_RIDGE_ALSO

USUAL_RATE = 0.2  # the error rate that is recommended where it is guaranteed
SERVED = ("vocabulary", "model", "stop_token", "processed")  # options that a proxy takes


def recommended_rate(guarantees: pl.DataFrame) -> float | None:
    """The usual rate where it is guaranteed, else the nearest laxer one that is, else a stricter.

    None where none is. The strictest of several would be chosen by what came out.
    """
    rates = guarantees.filter(pl.col("threshold").is_not_null())["error_rate"]
    return rates.filter(rates >= USUAL_RATE).min() or rates.max()


def next_commands(
    fitted_on: CalibrationData,
    estimator: str,
    guarantees: pl.DataFrame,
    answers: str,
    calibrator: str,
    reading: Reading,
    explorer: str | None = None,
    task: str | None = None,
) -> list[tuple[str, str]]:
    """What may be typed next, as pairs of what it does and the command.

    `answers`, `calibrator` and `explorer` are the files' paths as they were typed; `task` is the
    one that the answers state.
    """
    rate = recommended_rate(guarantees)
    keep = [] if rate is None else ["--error-rate", f"{rate:g}"]
    name_task = [] if task in (None, fitted_on.task) else ["--task", fitted_on.task]
    new = f"new{Path(answers).suffix or '.jsonl'}"
    by = ["--calibrator", calibrator]
    read_labelled = flags(reading)
    read_new = flags(reading.for_new_answers())
    page = explorer or f"{Path(answers).stem}.answers.html"
    rows = []
    if rate is None:
        missing = guarantees["error_rate"].max()
        plan = ["plan", *by, "--error-rate", f"{missing or 0.1:g}"]
        label = ["label", new, *read_new, *by, *name_task]
        rows += [("how many labels a guarantee needs", plan), ("label further answers", label)]
    score = ["score", "--answers", new, *read_new, *by, *name_task, *keep]
    explore = ["explore", "--answers", answers, *read_labelled, *by, *name_task, "--output", page]
    what = "a probability for each new answer" + (", and whether to keep it" if keep else "")
    rows += [
        (what, [*score, "--output", "scored.jsonl"]),
        ("look at the labelled answers", explore),
    ]
    if not fitted_on.parts:
        state = f"{Path(calibrator).stem}.db"
        watch = ["watch", "--answers", new, *read_new, *by, *name_task, *keep, "--state", state]
        rows.append(("hear when new answers are no longer like these", watch))
        if estimator != LOG_RIDGE_ALSO.id:  # servers give no columns of a user's own
            options = flags(Reading(**{name: getattr(reading, name) for name in SERVED}))
            serve = ["serve", "--upstream", "http://localhost:8000", *by, *keep, *options]
            rows.append(("a proxy that adds the probability to a server's answers", serve))
    return [(what, shlex.join(["tracecal", *words])) for what, words in rows]


def flags(reading: Reading) -> list[str]:
    """Options of reading as they are typed, without those at their defaults."""
    words = []
    for name, field in Reading.model_fields.items():
        value = getattr(reading, name)
        if value in (None, "") or value == field.get_default():
            continue
        if isinstance(value, Mapping):
            value = [f"{key}={path}" for key, path in value.items()]
        values = [] if value is True else value if isinstance(value, list) else [str(value)]
        words += [f"--{name.replace('_', '-')}", *values]
    return words
