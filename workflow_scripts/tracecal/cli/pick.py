"""`tracecal pick`: answers to label, drawn at random."""

from typing import Annotated

import typer

from tracecal.cli.options import SEED, AnswersFile, AsRead, command, read_given
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
    from tracecal.calibration.labelling import as_lines, picked
    from tracecal.io.files import write_text

    rows = picked(read_given(answers, reading, with_rows=True), number, seed)
    write_text(as_lines(rows), output)
    LOGGER.info("%s holds %d answers; label them from the first on", output, len(rows))
