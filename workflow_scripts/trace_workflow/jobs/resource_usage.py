"""What a job spent, by the kernel's count at its end, which the last line of its log says.

Snakemake's own benchmarks read all memory maps of a job twice a second, a fourteenth of the demo's
processor time.
"""

import re
import resource
import time
from dataclasses import dataclass
from pathlib import Path

from trace_workflow import STARTED

LINE = re.compile(r"took ([\d.]+) s, ([\d.]+) CPU s, ([\d.]+) MiB$")


@dataclass(frozen=True)
class ResourceUsage:
    """Wall and processor time (seconds), and the largest memory of any of its processes (MiB)."""

    wall: float
    cpu: float
    memory: float

    def __str__(self) -> str:
        return f"took {self.wall:.2f} s, {self.cpu:.2f} CPU s, {self.memory:.0f} MiB"


def resource_usage() -> ResourceUsage:
    """What this process and those it waited for spent, in wall time since the package loaded."""
    own, others = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    # A process starts with the `ru_maxrss` of the one that it was forked from, such as Snakemake.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return ResourceUsage(
        wall=time.monotonic() - STARTED,
        cpu=sum(used.ru_utime + used.ru_stime for used in (own, others)),
        memory=max(int(peak[1]), others.ru_maxrss) / 1024,
    )


def spent_by(log: Path) -> ResourceUsage | None:
    """What the job with this log spent; None where it has not finished."""
    try:
        found = LINE.search(log.read_text(encoding="utf-8", errors="replace").rstrip())
    except FileNotFoundError:
        return None
    return ResourceUsage(*map(float, found.groups())) if found else None
