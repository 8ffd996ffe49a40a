"""The options of `tracecal watch`."""

import argparse
from collections.abc import Callable

from pydantic import Field

from tracecal.inputs.schema import Strict
from tracecal.toolkit.options import add_answers, add_calibrator, add_options, add_task
from tracecal.watch.monitors import Promise


class Watching(Strict):
    """How often false alarms are allowed."""

    answers_per_alarm: int = Field(
        Promise.answers_per_alarm,
        ge=100,
        description="answers in which a false alarm is allowed once on average",
    )
    chance: float = Field(
        Promise.chance, gt=0, lt=1, description="of ever raising a false alarm about the error rate"
    )


def add_watch(command: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    """Add the command by the function with which the others are added."""
    watch = command(
        "watch",
        "say when traffic is no longer like the calibration's",
        "Monitors may be looked at after every answer; their state goes on where it was.",
    )
    add_calibrator(watch)
    watch.add_argument("--state", required=True, help="SQLite file of the monitors, made if absent")
    watch.add_argument("--labels", help="JSON Lines with id and correct, of some of the answers")
    watch.add_argument("--estimator", help="one of the calibrator's file")
    add_task(watch)
    add_options(watch, Watching, Watching.model_fields)
    add_answers(watch)

    def run(args: argparse.Namespace) -> None:
        from tracecal.toolkit.watch.command import run

        run(args)

    watch.set_defaults(run=run, wrong_rows="skip")
