"""`tracecal card`: what a calibrator's file says, and whether it is intact."""

import tracecal
from tracecal.cli.command import command
from tracecal.io.log import LOGGER, printable


@command(
    "know what a calibrator was fitted on, and what it guarantees",
    "tracecal card C.json --output card.html",
    arguments=["calibrator"],
    endings={"output": (".html",)},
)
def card(
    *,
    calibrator: str,
    check: bool = False,
    output: str | None = None,
) -> None:
    """Say in plain words what a calibrator's file holds.

    What it was fitted on, what it guarantees, and what it must not be used for. --check ends with
    1 where the file is no calibrator, or was changed.

    Parameters
    ----------
    calibrator : path
        A calibrator's JSON file.
    check : bool
        Only say whether it fits the schema and its checksum.
    output : path, optional
        The card as a page, .html.
    """
    from tracecal.calibrator.card import verify

    if check:
        print(printable(verify(calibrator)))
        return
    text = tracecal.Calibrator.load(calibrator).card()
    if output:
        text.save(output)
        LOGGER.info("open %s in a browser", output)
    print(printable(f"{text}"))
