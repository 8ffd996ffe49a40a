"""What commands and decoding cost beside their peers, measured in one run and written to a page.

`make bench AREAS=peers` measures `calibrate` and `score` beside a script of scikit-learn, decoding
with capture beside plain `generate`, and lm-polygraph, and writes the table of
docs/background/speed.md. Without lm-polygraph the page stays as it is.
"""

import importlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.pages import replace_table
from benchmarks.timing import Row

PAGE = Path(__file__).resolve().parents[1] / "docs/background/speed.md"
# Commands come first: once Torch is imported, a child's peak memory is at least this process's.
AREAS = ("commands", "decoding", "polygraph")


def rows() -> Iterator[Row]:
    loads, measured = [os.getloadavg()[0]], []
    for area in AREAS:
        for row in importlib.import_module(f"benchmarks.{area}").rows():
            measured.append(row)
            loads.append(os.getloadavg()[0])
            yield row
    if any(row.against == "lm-polygraph" for row in measured):
        replace_table(PAGE, "peers", table(measured, loads))


def table(measured: list[Row], loads: list[float]) -> list[str]:
    """A line per work that has an alternative in CPU seconds, with the load of the machine."""
    busy = "busy, so read the ratios, not the seconds" if max(loads) > os.cpu_count() else "quiet"
    compared = [row for row in measured if row.ratio and not row.work.endswith(("MB", "clock"))]
    return [
        "| work | tracecal | other | ratio | against |",
        "|---|---|---|---|---|",
        *(
            f"| {row.work} | {row.ours:.3g} | {row.alternative:.3g} | {row.ratio:.2f} | {row.against} |"
            for row in compared
        ),
        "",
        f"{time.strftime('%-d %B %Y')}, {os.cpu_count()} cores with a load of {min(loads):.1f} to "
        f"{max(loads):.1f}: {busy}. Both sides run in turn.",
    ]
