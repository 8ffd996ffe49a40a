"""`tracecal pick`: answers to label, drawn at random."""

from typing import Any

import tracecal
from tracecal.cli.command import command
from tracecal.io.log import LOGGER


@command(
    "choose answers to label",
    "tracecal pick --answers all.jsonl --number 200 --output pick.jsonl",
    options_of="pick",
)
def pick(*, answers: str, number: int, output: str, **options: Any) -> None:
    rows = tracecal.pick(answers, number, output=output, **options)
    LOGGER.info("%s holds %d answers; label them from the first on", output, rows.height)
