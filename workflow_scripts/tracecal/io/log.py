"""Log lines that are readable and harmless, in a terminal and in a file.

`reminder` logs one every ten seconds while something takes longer than that.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, get_ident

from tracecal.errors import in_python


def name_arguments(record: logging.LogRecord) -> bool:
    """Filter of `LOGGER`: options in a record are the arguments of Python. Commands take it off."""
    record.msg, record.args = in_python(record.getMessage()), ()
    return True


LOGGER = logging.getLogger("tracecal")
LOGGER.addFilter(name_arguments)
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
EVERY = 10.0  # seconds between lines of a `reminder`
MOST_SHOWN = 4_000  # characters of a record: a name in it may be as long as a file


class Printable(logging.Formatter):
    """Formats records as `printable` text, the middle of a long one left out."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if len(text) > MOST_SHOWN:
            half = MOST_SHOWN // 2
            n_left_out = f"{len(text) - 2 * half:,}"
            text = f"{text[:half]} [{n_left_out} characters left out] {text[-half:]}"
        return printable(text)


def printable(text: str) -> str:
    """Text in which characters that control a terminal are written out, as Python would."""
    return text.translate(_SHOWN)


@contextmanager
def reminder(describe: Callable[[], str]) -> Iterator[None]:
    """Log every ten seconds what is being done, until it is.

    >>> with reminder(lambda: "fitting on 100,000 labels"):
    ...     pass
    """
    has_ended = Event()

    def remind() -> None:
        while not has_ended.wait(EVERY):
            LOGGER.info("%s", describe())

    Thread(target=remind, daemon=True).start()
    try:
        yield
    finally:
        has_ended.set()


@contextmanager
def silenced() -> Iterator[None]:
    """Log nothing of this thread."""
    here = get_ident()

    def is_elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != here

    LOGGER.addFilter(is_elsewhere)
    try:
        yield
    finally:
        LOGGER.removeFilter(is_elsewhere)
