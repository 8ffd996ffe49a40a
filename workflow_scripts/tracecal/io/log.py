"""Log lines that are readable and harmless, in a terminal and in a file."""

import logging

LOGGER = logging.getLogger("tracecal")
# Names of models and ids of answers come from elsewhere: they must not move a terminal's cursor,
# recolour or reverse what it shows.
_UNSEEN = [
    *range(9),
    *range(11, 32),
    *range(127, 160),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
]
_SHOWN = {code: chr(code).encode("unicode_escape").decode() for code in _UNSEEN}


class Printable(logging.Formatter):
    """Formats records as `printable` text."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def printable(text: str) -> str:
    """Text in which characters that control a terminal are written out, as Python would."""
    return text.translate(_SHOWN)
