"""`tracecal card`: what a calibrator's file says, whether it is intact, and how two differ."""

import tracecal
from tracecal.cli.command import command
from tracecal.errors import InputError
from tracecal.io.log import LOGGER, printable


@command(
    "know what a calibrator was fitted on, and what it guarantees",
    "tracecal card C.json --output card.html",
    arguments=["calibrator", "second"],
    endings={"output": (".html",)},
)
def card(
    *,
    calibrator: str,
    second: str | None = None,
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
    second : path, optional
        Another, to compare with it.
    check : bool
        Only say whether it fits the schema and its checksum.
    output : path, optional
        The card as a page, .html.
    """
    from tracecal.calibrator.card import verify

    if second and output:
        raise InputError("--output is the page of one card: leave out the other file.")
    verdicts = [verify(path) for path in (calibrator, second) if path]
    if check:
        print(printable("\n".join(verdicts)))
        return
    loaded = tracecal.Calibrator.load(calibrator)
    text = loaded.compare(second) if second else loaded.card()
    if output:
        loaded.card().save(output)
        LOGGER.info("open %s in a browser", output)
    print(printable(f"{text}"))
