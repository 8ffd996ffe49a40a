"""CPU seconds of pieces of work, paired with those of an alternative."""

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

REPEATS = 5
SCRIPTS = Path(__file__).resolve().parents[1] / "workflow_scripts"


@dataclass(frozen=True)
class Row:
    """What one piece of work costs, in CPU seconds (user and system, all threads).

    `ratio` is the median over paired runs of ours / alternative; `floor` is the least that any
    implementation must spend (reading the data, say). `items` are what is worked on, counted in
    `unit`; null where there is no alternative, floor or count.
    """

    work: str
    ours: float
    alternative: float | None = None
    against: str = ""
    ratio: float | None = None
    floor: float | None = None
    items: int | None = None
    unit: str = ""


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of this process that `work` takes."""
    before = time.process_time()
    work()
    return time.process_time() - before


def cpu_seconds_of(command: Sequence[str], **options: object) -> float:
    """CPU seconds of a program and of all that it starts; raises where it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def used(*command: object) -> tuple[float, float]:
    """CPU seconds and peak resident MB of a program that may import ours; raises where it fails."""
    process = subprocess.Popen(
        [str(one) for one in command],
        env=os.environ | {"PYTHONPATH": str(SCRIPTS)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, spent = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{command} failed")
    return spent.ru_utime + spent.ru_stime, spent.ru_maxrss / 1024


def paired(
    work: str,
    ours: Callable[[], object],
    alternative: Callable[[], object],
    against: str,
    *,
    floor: Callable[[], object] | None = None,
    items: int | None = None,
    unit: str = "",
    repeats: int = REPEATS,
) -> Row:
    """Run ours and the alternative in turn, `repeats` times after one that warms up."""
    ours(), alternative()
    pairs = [(cpu_seconds(ours), cpu_seconds(alternative)) for _ in range(repeats)]
    return Row(
        work,
        statistics.median(one for one, _ in pairs),
        statistics.median(other for _, other in pairs),
        against,
        statistics.median(one / other for one, other in pairs),
        statistics.median(cpu_seconds(floor) for _ in range(repeats)) if floor else None,
        items,
        unit,
    )


def alone(
    work: str,
    ours: Callable[[], float],
    *,
    items: int | None = None,
    unit: str = "",
    repeats: int = REPEATS,
) -> Row:
    """The median of what `ours` returns, CPU seconds that it has measured itself."""
    return Row(work, statistics.median(ours() for _ in range(repeats)), items=items, unit=unit)
