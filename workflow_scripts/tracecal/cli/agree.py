"""`tracecal agree`: how far two people's labels agree."""

from typing import Any

import tracecal
from tracecal.cli.command import command
from tracecal.io.log import printable


@command(
    "know how far two people's labels agree",
    "tracecal agree a.labelled.jsonl b.labelled.jsonl",
    options_of="agree",
    arguments=["answers", "second"],
)
def agree(**options: Any) -> None:
    print(printable(f"{tracecal.agree(**options)}"))
