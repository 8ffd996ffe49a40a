"""`tracecal explore`: a page that shows the answers of a file."""

from typing import Annotated

import typer

from tracecal.calibration.settings import EXPLORED, SEED
from tracecal.cli.options import (
    PARTS,
    AnswersFile,
    AsRead,
    TaskName,
    command,
    ending,
)

CHOICE = "What is shown"


@command(
    "look at answers and their confidence",
    "tracecal explore --answers log.jsonl --calibrator C.json --output answers.html",
)
def explore(
    answers: AnswersFile,
    output: Annotated[str, typer.Option(callback=ending(".html"), help="the page, .html")],
    reading: AsRead,
    calibrator: Annotated[
        str | None, typer.Option(help="a calibrator's JSON file, for probabilities")
    ] = None,
    task: TaskName = None,
    number: Annotated[
        int, typer.Option(help="answers to show, at most", rich_help_panel=CHOICE)
    ] = EXPLORED,
    seed: Annotated[
        int, typer.Option(help="of the choice of more answers", rich_help_panel=CHOICE)
    ] = SEED,
    parts: Annotated[
        str | None,
        typer.Option(
            help=f"parts, each in its answer: {PARTS}; by default the calibrator's",
            rich_help_panel=CHOICE,
        ),
    ] = None,
) -> None:
    """Write a page that shows the answers of a file.

    It is the page that a run of the workflow makes: one file, which loads nothing else.
    """
    from tracecal.api import labels

    chosen = {"number": number, "seed": seed, "parts": parts}
    labels.explore(answers, output, calibrator=calibrator, task=task, **chosen, reading=reading)
