"""`tracecal watch`: the monitors over files of answers and labels, with a state that goes on."""

from typing import Any

import typer

import tracecal
from tracecal.answers.reading import Reading
from tracecal.cli.command import command
from tracecal.cli.options import reading_options
from tracecal.io.log import printable
from tracecal.serving.monitoring.settings import MonitorSettings

ALARM = 3  # status after an alarm


@command(
    "know when traffic is no longer like the calibration's",
    "tracecal watch --answers log.jsonl --calibrator C.json --state state.db",
    options_of="Monitors",
    texts_of=["Monitors.watch", "Monitors.judge"],
    usual=["labels", "error_rate"],
    panels={"False alarms": tuple(MonitorSettings.model_fields)},
    models={"reading": reading_options(defaults={"wrong_rows": "skip"})},
)
def watch(
    *,
    answers: str,
    calibrator: str,
    state: str,
    reading: Reading,
    labels: str | None = None,
    task: str | None = None,
    **options: Any,
) -> None:
    """Say when traffic is no longer like the calibration's.

    You may look after every answer; with the same state the next call goes on where this one
    ended. Alarms hold for answers that are independent of one another: where neighbours are alike,
    use --one-per or --block. Rows that cannot be read are left out. It ends with 3 after an alarm,
    and says what changed where.
    """
    with tracecal.Monitors(calibrator, state, **options) as monitors:
        monitors.watch(answers, task=task, reading=reading)
        if labels:
            monitors.judge(labels, reading=reading)
        print(printable(monitors.summary()))
        if monitors.alarms:
            raise typer.Exit(ALARM)
