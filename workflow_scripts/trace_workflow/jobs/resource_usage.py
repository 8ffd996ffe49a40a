"""The time and memory of a job, from the kernel at its end and in the last line of its log.

Snakemake's own benchmarks would read all memory maps of a job twice a second, which costs a
fourteenth of the demo's processor time.
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
    """Wall and processor time (seconds), and the largest memory of any of its processes (MiB).

    Examples
    --------
    >>> str(ResourceUsage(wall=3.1, cpu=2.5, memory=120.4))
    'took 3.10 s, 2.50 CPU s, 120 MiB'
    """

    wall: float
    cpu: float
    memory: float

    def __str__(self) -> str:
        return f"took {self.wall:.2f} s, {self.cpu:.2f} CPU s, {self.memory:.0f} MiB"


def resource_usage() -> ResourceUsage:
    """The usage of this process and its finished children, with wall time since the package
    loaded."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    # A process starts with the `ru_maxrss` of its parent, such as Snakemake.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return ResourceUsage(
        wall=time.monotonic() - STARTED,
        cpu=sum(usage.ru_utime + usage.ru_stime for usage in usages),
        memory=max(int(peak[1]), usages[1].ru_maxrss) / 1024,
    )


def spent_by(log: Path) -> ResourceUsage | None:
    """The usage of the job with this log; None before it finishes."""
    try:
        line = LINE.search(log.read_text(encoding="utf-8", errors="replace").rstrip())
    except FileNotFoundError:
        return None
    return ResourceUsage(*map(float, line.groups())) if line else None
