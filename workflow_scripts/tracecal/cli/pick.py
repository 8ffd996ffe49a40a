"""`tracecal pick`: answers to label, drawn at random."""

from typing import Annotated

import typer

from tracecal.calibration.settings import SEED
from tracecal.cli.options import AnswersFile, AsRead, command
from tracecal.io.log import LOGGER


@command(
    "choose answers to label",
    "tracecal pick --answers all.jsonl --number 200 --output pick.jsonl",
)
def pick(
    answers: AnswersFile,
    number: Annotated[int, typer.Option(help="answers to draw, at least")],
    output: Annotated[str, typer.Option(help="the rows drawn, as JSON Lines")],
    reading: AsRead,
    seed: Annotated[int, typer.Option(help="of the draw")] = SEED,
) -> None:
    """Draw answers to label at random.

    Answers to one question stay together. The first 50 of 200 are a random sample too, so labelling
    may stop anywhere; a larger number goes on where a smaller one ended.
    """
    from tracecal.api import labels

    drawn = labels.pick(answers, number, output=output, seed=seed, reading=reading)
    LOGGER.info("%s holds %d answers; label them from the first on", output, drawn.height)
