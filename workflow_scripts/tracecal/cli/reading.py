"""`tracecal reading`: how a file of answers is read, and what it lacks."""

import tracecal
from tracecal.answers.reading import Reading
from tracecal.cli.command import command
from tracecal.cli.options import FIRST_READING, USUALLY, ModelOptions
from tracecal.errors import InputError
from tracecal.io.log import printable


@command(
    "know how your answers are read, and what they lack",
    "tracecal reading log.jsonl",
    models={"reading": ModelOptions(panels={USUALLY: FIRST_READING})},
)
def reading(*, answers: str, reading: Reading) -> None:
    """Say how a file of answers is read, and what it lacks.

    It may be JSON Lines, JSON, CSV, TSV, Excel, Arrow, Parquet or an Inspect log. All commands that
    read answers take these options; a file mostly says what they do (docs/reference/formats.md).

    Parameters
    ----------
    answers : path
        The file of answers.
    """
    summary = tracecal.explain_reading(answers, reading=reading)
    print(printable(summary.text))
    if not summary.answers.height:
        raise InputError(f"{answers} holds no usable answer; the reason is above.")
