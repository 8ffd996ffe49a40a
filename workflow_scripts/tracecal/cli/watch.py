"""`tracecal watch`: the monitors over files of answers and labels, with a state that goes on."""

from typing import Annotated

import typer

from tracecal.answers.reading import Reading
from tracecal.cli.options import (
    AnswersFile,
    CalibratorFile,
    ErrorRate,
    Shown,
    TaskName,
    command,
)
from tracecal.io.log import printable
from tracecal.serving.monitoring.settings import Watching

ALARMS = {"False alarms": tuple(Watching.model_fields)}


@command(
    "know when traffic is no longer like the calibration's",
    "tracecal watch --answers log.jsonl --calibrator C.json --state state.db",
)
def watch(
    answers: AnswersFile,
    calibrator: CalibratorFile,
    state: Annotated[str, typer.Option(help="SQLite file of the monitors, made if absent")],
    watching: Annotated[Watching, Shown(panels=ALARMS)],
    reading: Annotated[Reading, Shown(defaults={"wrong_rows": "skip"}, hidden=True)],
    labels: Annotated[
        str | None, typer.Option(help="JSON Lines with id and correct, of some of the answers")
    ] = None,
    error_rate: ErrorRate = None,
    estimator: Annotated[str | None, typer.Option(help="one of the calibrator's file")] = None,
    task: TaskName = None,
) -> None:
    """Say when traffic is no longer like the calibration's.

    You may look after every answer; with the same state the next call goes on where this one
    ended. Alarms hold for answers that are independent of one another: where neighbours are alike,
    use --one-per or --block. Rows that cannot be read are left out.
    """
    from tracecal.serving.monitors import Monitors

    with Monitors(
        calibrator, state, error_rate=error_rate, estimator=estimator, **dict(watching)
    ) as monitors:
        monitors.watch(answers, task=task, reading=reading)
        if labels:
            monitors.judge(labels)
        print(printable(monitors.summary()))
