"""`tracecal cascade`: what escalating to a large model is worth, by labelled answers of both."""

from typing import Any

import tracecal
from tracecal.cli.command import command, require_installed
from tracecal.io.log import printable


@command(
    "know what escalating to a large model is worth",
    "tracecal cascade --small small.jsonl --large large.jsonl --picture cascade.svg",
    options_of="cascade",
    endings={"picture": (".svg", ".pdf", ".png")},
    panels={"Prices of a million tokens": ("small_price", "large_price")},
)
def cascade(
    *,
    small: str,
    large: str,
    output: str | None = None,
    picture: str | None = None,
    **options: Any,
) -> None:
    """
    Parameters
    ----------
    output : path, optional
        The small model's calibrator, with the thresholds: a JSON file.
    picture : path, optional
        A picture: .svg, .pdf or .png.
    """
    if picture:
        require_installed("--picture", "pictures", "matplotlib")
    result = tracecal.cascade(small, large, **options)
    if output:
        result.calibrator.save(output)
    if picture:
        result.picture(picture)
    print(printable(f"{result}"))
