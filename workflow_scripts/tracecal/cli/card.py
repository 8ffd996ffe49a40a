"""`tracecal card`: what a calibrator's file says, whether it is intact, and how two differ."""

from typing import Annotated

import typer

from tracecal.cli.options import command, ending
from tracecal.io.log import LOGGER, printable


@command(
    "know what a calibrator was fitted on, and what it guarantees",
    "tracecal card C.json --output card.html",
)
def card(
    calibrator: Annotated[str, typer.Argument(help="a calibrator's JSON file")],
    second: Annotated[
        str | None, typer.Argument(metavar="[OTHER]", help="another, to compare with it")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="only say whether it fits the schema and its checksum")
    ] = False,
    output: Annotated[
        str | None, typer.Option(callback=ending(".html"), help="the card as a page, .html")
    ] = None,
) -> None:
    """Say in plain words what a calibrator's file holds.

    What it was fitted on, what it guarantees, and what it must not be used for. --check ends with
    1 where the file is no calibrator, or was changed.
    """
    from tracecal.calibrator.calibrator import Calibrator
    from tracecal.calibrator.card import checked
    from tracecal.errors import InputError

    if second and output:
        raise InputError("--output is the page of one card: leave out the other file.")
    sound = [checked(path) for path in (calibrator, second) if path]
    if check:
        print(printable("\n".join(sound)))
        return
    one = Calibrator.load(calibrator)
    told = one.compare(second) if second else one.card()
    print(printable(f"{told}"))
    if output:
        told.save(output)
        LOGGER.info("open %s in a browser", output)
