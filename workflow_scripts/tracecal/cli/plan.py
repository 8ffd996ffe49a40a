"""`tracecal plan`: how many labels a guaranteed error rate needs."""

from typing import Annotated

import typer

from tracecal.calibration.settings import DRAWS, MOST
from tracecal.cli.options import SEED, command, ending

GUESSES = "Without a calibrator"
SIMULATION = "Simulation"


@command(
    "know how many labels a guarantee needs",
    "tracecal plan --calibrator C.json --error-rate 0.05 --picture plan.svg",
)
def plan(
    error_rate: Annotated[float, typer.Option(help="target error rate")],
    calibrator: Annotated[str | None, typer.Option(help="a calibrator's JSON file")] = None,
    confidence: Annotated[float, typer.Option(help="of the guarantee")] = 0.9,
    picture: Annotated[
        str | None, typer.Option(callback=ending(".svg"), help="an .svg of the table")
    ] = None,
    accuracy: Annotated[
        float | None,
        typer.Option(help="a guess of the share of right answers", rich_help_panel=GUESSES),
    ] = None,
    auroc: Annotated[
        float | None,
        typer.Option(help="a guess of the confidence's AUROC", rich_help_panel=GUESSES),
    ] = None,
    most: Annotated[
        int, typer.Option(help="largest number of labels to try", rich_help_panel=SIMULATION)
    ] = MOST,
    draws: Annotated[
        int, typer.Option(help="simulated draws of each number", rich_help_panel=SIMULATION)
    ] = DRAWS,
    seed: Annotated[int, typer.Option(help="of the draws", rich_help_panel=SIMULATION)] = SEED,
) -> None:
    """Say how many labels a guaranteed error rate needs.

    By simulation: from the labelled answers of a calibrator, or from guesses of --accuracy and
    --auroc. No question counts with more answers than in the calibrator's guarantees.
    """
    from tracecal.calibration import planning
    from tracecal.io.files import write_text

    population, share = planning.population(calibrator, accuracy, auroc)
    planned = planning.planned(population, share, error_rate, confidence, most, draws, seed)
    print(planning.printed(population, planned, error_rate, confidence))
    if picture:
        write_text(planning.picture(planned, error_rate, confidence), picture)
