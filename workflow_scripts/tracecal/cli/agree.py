"""`tracecal agree`: how far two people's labels agree."""

from typing import Annotated

import typer

from tracecal.calibration.settings import SEED
from tracecal.cli.options import AsRead, command
from tracecal.io.log import printable


@command(
    "know how far two people's labels agree",
    "tracecal agree a.labelled.jsonl b.labelled.jsonl",
)
def agree(
    answers: Annotated[
        str, typer.Argument(help="one person's labels, JSON Lines, JSON, CSV or Parquet")
    ],
    second: Annotated[str, typer.Argument(help="the other's")],
    reading: AsRead,
    seed: Annotated[int, typer.Option(help="of the resamples")] = SEED,
) -> None:
    """Say how far two people's labels agree.

    Prints the share of equal verdicts and Cohen's kappa with intervals, and the answers on which
    they disagree. Unsure does not count as a verdict.
    """
    from tracecal.api import labels

    print(printable(f"{labels.agree(answers, second, seed=seed, reading=reading)}"))
