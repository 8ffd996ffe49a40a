"""`tracecal explore`: a page that shows the answers of a file."""

from typing import Any

import tracecal
from tracecal.cli.command import command


@command(
    "look at answers and their confidence",
    "tracecal explore --answers log.jsonl --calibrator C.json --output answers.html",
    options_of="explore",
    endings={"output": (".html",)},
    panels={"What is shown": ("number", "seed", "parts")},
)
def explore(**options: Any) -> None:
    tracecal.explore(**options)
