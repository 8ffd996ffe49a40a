"""The commands that may follow `tracecal calibrate`, as they are typed."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from tracecal.answers.reading import UNTYPED, Reading
from tracecal.calibrator.schema import CalibrationData
from tracecal.estimators.registry import LOG_RIDGE_ALSO

SCORED_FILE = "scored.jsonl"
SERVED = ("vocabulary", "model", "stop_token", "processed")  # options that a proxy takes


def next_commands(
    fitted_on: CalibrationData,
    estimator: str,
    error_rate: float | None,
    is_guaranteed: bool,
    answers: str,
    calibrator: str,
    reading: Reading,
    explorer: str | None = None,
    task: str | None = None,
) -> list[tuple[str, str]]:
    """Suggest the next commands, as pairs of a purpose and a command.

    Without a guarantee at the decision's `error_rate`, the first command collects labels.
    `answers`, `calibrator` and `explorer` are paths as the user typed them; `task` is the task that
    the answers state.
    """
    keep = ["--error-rate", f"{error_rate:g}"] if is_guaranteed else []
    name_task = [] if task in (None, fitted_on.task) else ["--task", fitted_on.task]
    new = f"new{Path(answers).suffix or '.jsonl'}"
    by = ["--calibrator", calibrator]
    read_labelled = flags(reading)
    read_new = flags(reading.for_new_answers())
    page = explorer or f"{Path(answers).stem}.answers.html"
    rows = []
    if not is_guaranteed:
        rate = ["--error-rate", f"{error_rate or 0.1:g}"]
        label = ["label", new, *read_new, *by, *name_task, *rate]
        plan = ["plan", *by, *rate]
        rows += [("ask for the labels that decide", label), ("how many labels it needs", plan)]
    score = ["score", "--answers", new, *read_new, *by, *name_task, *keep]
    explore = ["explore", "--answers", answers, *read_labelled, *by, *name_task, "--output", page]
    what = "a probability for each new answer" + (", and whether to keep it" if keep else "")
    rows += [(what, [*score, "--output", SCORED_FILE]), ("look at the labelled answers", explore)]
    if not fitted_on.parts:
        state = f"{Path(calibrator).stem}.db"
        watch = ["watch", "--answers", new, *read_new, *by, *name_task, *keep, "--state", state]
        rows.append(("be alerted when new answers drift", watch))
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
        if hasattr(value, "__arrow_c_stream__"):  # a frame, which nobody can type
            continue
        if name in UNTYPED or value in (None, "") or value == field.get_default():
            continue
        if isinstance(value, Mapping):
            value = [f"{key}={path}" for key, path in value.items()]
        values = [] if value is True else value if isinstance(value, list) else [str(value)]
        words += [f"--{name.replace('_', '-')}", *values]
    return words
