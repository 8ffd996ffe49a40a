"""A program with the library of this checkout and with an earlier one, in turn, and a plain recipe.

`BEFORE=FOLDER make bench AREAS="one_answer reading start"` compares with the package `tracecal` in
FOLDER: `workflow_scripts` of another checkout, or where `pip install --target` put a release.
Without it this checkout is measured alone. A program prints its CPU seconds, its peak MB and the
numbers that it computed, whose bits are compared.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timing import REPEATS, SCRIPTS, Row

# The work of a program is its function `work`, which returns numbers; `times` says how often.
PROGRAM = """
import gc, json, resource, sys, time
import numpy as np
{code}
work()
gc.freeze()
before = time.process_time()
for _ in range({times}):
    numbers = work()
seconds = (time.process_time() - before) / {times}
peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024
print(json.dumps([seconds, peak, np.asarray(numbers, dtype=float).tobytes().hex()]))
"""


@dataclass(frozen=True)
class Run:
    seconds: float
    peak: float
    numbers: str


def compared(
    work: str, code: str, plain: str, *arguments: object, times: int = 1, items: int | None = None
) -> Iterator[Row]:
    """Rows of the CPU seconds and of the peak MB of `code`, beside those of before.

    The floor is what `plain` takes.
    """
    before = os.environ.get("BEFORE")
    sides = {"ours": SCRIPTS, "plain": SCRIPTS} | ({"before": Path(before)} if before else {})
    runs: dict[str, list[Run]] = {side: [] for side in sides}
    for _ in range(REPEATS):
        for side, folder in sides.items():
            program = PROGRAM.format(code=plain if side == "plain" else code, times=times)
            runs[side].append(_run(program, folder, arguments))
    differing = ""
    if before:
        n, n_differing = _differing(runs["ours"][0].numbers, runs["before"][0].numbers)
        differing = f"before; {n_differing} of {n} numbers differ"
    for measure, name in (("seconds", work), ("peak", f"{work}, peak MB")):
        yield _row(name, measure, runs, differing, items if measure == "seconds" else None)


def _row(
    name: str, measure: str, runs: dict[str, list[Run]], differing: str, items: int | None
) -> Row:
    values = {side: [getattr(run, measure) for run in of_side] for side, of_side in runs.items()}
    medians = {side: statistics.median(listed) for side, listed in values.items()}
    least = " and ".join(
        f"{min(values[side]):.3g}" for side in ("ours", "before") if side in values
    )
    pairs = zip(values["ours"], values.get("before", ()), strict=False)
    ratios = [ours / earlier for ours, earlier in pairs]
    return Row(
        name,
        medians["ours"],
        medians.get("before"),
        f"{differing or 'alone'}; least {least}",
        statistics.median(ratios) if ratios else None,
        medians["plain"],
        items,
        "answers" if items else "",
    )


def _run(program: str, folder: Path, arguments: Sequence[object]) -> Run:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    ended = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, encoding="utf-8"
    )
    return Run(*json.loads(ended.stdout.splitlines()[-1]))


def _differing(ours: str, before: str) -> tuple[int, int]:
    """How many numbers of eight bytes there are, and how many of them differ."""
    parts = [[text[n : n + 16] for n in range(0, len(text), 16)] for text in (ours, before)]
    n_missing = abs(len(parts[0]) - len(parts[1]))
    n_differing = sum(one != other for one, other in zip(*parts, strict=False))
    return max(map(len, parts)), n_missing + n_differing
