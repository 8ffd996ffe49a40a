"""Progress bars as lines of a log: at most one in some seconds, with the time left."""

import io
import time
from typing import Any

from tqdm import tqdm

from tracecal.io.log import LOGGER


class _Lines:
    """File-like sink that turns tqdm's carriage-return redraws into log lines."""

    def write(self, text: str) -> None:
        if line := text.strip():
            LOGGER.info(line)

    def flush(self) -> None:
        pass


class LineBar(tqdm):
    """A bar for the client of the hub, which draws several: it logs the bytes that have arrived.

    It does so at most every `every` seconds.
    """

    every = 30.0

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self.shown = time.monotonic()
        super().__init__(*arguments, **settings | {"file": io.StringIO()})

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:
        now = time.monotonic()
        # Of the client's two bars of bytes, one counts the transfer, the other the file on disk.
        if self.unit == "B" and "Recon" in self.desc and now - self.shown >= self.every:
            self.shown = now
            LOGGER.info("%.2f of %.2f GB have arrived", self.n / 1e9, (self.total or 0) / 1e9)
        return True


def progress_bar(total: int, name: str, unit: str, every: float = 5.0) -> tqdm:
    """A tqdm bar that logs one line (share done, rate, time left) at most every `every` seconds."""
    return tqdm(
        total=total,
        desc=name,
        unit=unit,
        file=_Lines(),
        mininterval=every,
        maxinterval=2 * every,
        ncols=100,
        ascii=True,
    )
