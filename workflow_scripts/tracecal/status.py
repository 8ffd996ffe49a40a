"""The state of a run: jobs done, running, failed and remaining, and when the run may end.

It is read from outputs, logs and benchmarks, so it works on one machine and on a cluster, during a
run and afterwards.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

STATES = ("done", "running", "failed", "remaining")
# Time of a job without a benchmark, start included.
LIGHT_SECONDS = 2.0


@dataclass(frozen=True)
class Job:
    """One job of the run. `model` and `benchmark` are None where there is none."""

    rule: str
    name: str
    model: str | None
    up_to_date: bool
    outputs: tuple[Path, ...]
    log: Path
    benchmark: Path | None


def state(job: Job, started: float | None) -> str:
    """One of `STATES`; `started` is when the active run began (seconds), None if no run is active.

    A job with a log and without outputs has begun. It is running if the log belongs to the active
    run and does not end in an error; otherwise it failed or was interrupted. An old failure that
    the active run will retry counts as remaining.
    """
    if job.up_to_date:
        return "done"
    if not job.log.exists() or all(path.exists() for path in job.outputs):
        return "remaining"
    if started is None:
        return "failed"
    if job.log.stat().st_mtime < started:
        return "remaining"
    return "failed" if error_in(job.log) else "running"


def error_in(log: Path) -> str | None:
    """The sentence of the error that ended a job, None where its log holds none."""
    found = re.findall(r": ((?:unexpected )?error\b.*)", log.read_text(errors="replace"))
    return found[-1] if found else None


def last_line(log: Path) -> str:
    """The last line of a log: how far its job has come."""
    lines = log.read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "nothing logged yet")


def seconds(benchmark: Path) -> float | None:
    """Wall time in a benchmark file of Snakemake, None where it is not there or cut short."""
    try:
        header, *rows = benchmark.read_text(encoding="utf-8").split("\n")
        return float(rows[0].split("\t")[header.split("\t").index("s")])
    except (OSError, ValueError, IndexError):
        return None


@dataclass(frozen=True)
class Estimate:
    """Remaining work in seconds if jobs ran one by one; and how many jobs cannot be estimated,
    as none of their rule has finished.
    """

    work: float
    unknown: int


def estimate(jobs: Sequence[Job], states: Sequence[str]) -> Estimate:
    """Remaining work, from the median time of finished jobs of the same rule and model.

    Where no job of that model has finished, of the same rule; a running job counts half. A job of
    a rule that writes no benchmark counts `LIGHT_SECONDS`.
    """
    times = defaultdict(list)
    for job, its in zip(jobs, states, strict=True):
        if its == "done" and job.benchmark and (took := seconds(job.benchmark)) is not None:
            times[job.rule, job.model].append(took)
            times[job.rule].append(took)
    work, unknown = 0.0, 0
    for job, its in zip(jobs, states, strict=True):
        known = times.get((job.rule, job.model)) or times.get(job.rule)
        if its == "done":
            continue
        if job.benchmark and not known:
            unknown += 1
            continue
        took = median(known) if job.benchmark else LIGHT_SECONDS
        work += took / 2 if its == "running" else took
    return Estimate(work, unknown)


def overview(jobs: Sequence[Job], started: float | None, parallel: int | None, now: float) -> str:
    """The state of a run as text. `parallel`: jobs side by side, None: as many as run now."""
    states = [state(job, started) for job in jobs]
    count = Counter(states)
    lines = []
    for job in _those(jobs, states, "running"):
        age = timedelta(seconds=round(now - job.log.stat().st_mtime))
        lines += [f"running  {job.rule} {job.name} (last heard {age} ago)"]
        lines += [f"         {last_line(job.log)}"]
    for job in _those(jobs, states, "failed"):
        lines += [f"failed   {job.rule} {job.name} (log: {job.log})"]
        lines += [f"         {error_in(job.log) or 'it was interrupted'}"]
    parts = [
        [", ".join(f"{count[state]} {state}" for state in STATES) + f"; {len(jobs)} jobs in all"],
        _by_rule(jobs, states),
        lines,
        [_ending(jobs, states, started, parallel, now)],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _those(jobs: Sequence[Job], states: Sequence[str], wanted: str) -> Iterable[Job]:
    return (job for job, its in zip(jobs, states, strict=True) if its == wanted)


def _by_rule(jobs: Sequence[Job], states: Sequence[str]) -> list[str]:
    """A table of the rules that are not done, one line each."""
    count = Counter((job.rule, its) for job, its in zip(jobs, states, strict=True))
    rules = list(dict.fromkeys(job.rule for job in jobs))
    open_rules = [rule for rule in rules if any(count[rule, its] for its in STATES[1:])]
    if not open_rules:
        return []
    width = max(map(len, open_rules))
    rows = [[rule, *(str(count[rule, its] or "-") for its in STATES)] for rule in open_rules]
    return [
        f"{name:<{width}}" + "".join(f"{cell:>11}" for cell in cells)
        for name, *cells in [["", *STATES], *rows]
    ]


def _ending(
    jobs: Sequence[Job],
    states: Sequence[str],
    started: float | None,
    parallel: int | None,
    now: float,
) -> str:
    """The sentence on the end of the run."""
    if set(states) <= {"done"}:
        return "Finished."
    left = estimate(jobs, states)
    side_by_side = parallel or max(1, states.count("running"))
    ahead = timedelta(seconds=round(left.work / side_by_side))
    text = f"Work ahead: about {ahead} with {side_by_side} job(s) side by side"
    if started is not None:
        text += f", so the end is expected at {datetime.fromtimestamp(now) + ahead:%Y-%m-%d %H:%M}"
    if left.unknown:
        text += f"; {left.unknown} more job(s) are not counted, as none of their rule has finished"
    return text + (". No run is active." if started is None else ".")
