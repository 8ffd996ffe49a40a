"""A line of the log every ten seconds, while something takes longer than that."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from tracecal.io.log import LOGGER

EVERY = 10.0  # seconds


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
