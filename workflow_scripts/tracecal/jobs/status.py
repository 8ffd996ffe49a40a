"""The state of a run: jobs done, running, failed and remaining, and when the run may end.

It is read from outputs and logs: on one machine or a cluster, during a run or after it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

from tracecal.jobs.spent import spent_by

STATES = ("done", "running", "failed", "remaining", "deleted")


@dataclass(frozen=True)
class Job:
    """One job of the run. `model` is None where there is none."""

    rule: str
    name: str
    model: str | None
    up_to_date: bool
    outputs: tuple[Path, ...]
    log: Path


def state(job: Job, started: float | None) -> str:
    """One of `STATES`; `started` is when the active run started (seconds), None without one.

    A job with a log and without outputs has started. It is running if its log belongs to the active
    run and does not end in an error; otherwise it failed or was interrupted. An old failure that
    the active run will retry counts as remaining. What a finished job made was deleted where its
    outputs are gone: nothing is wrong with it, and it remains unless nobody needs it.
    """
    complete = all(path.exists() for path in job.outputs)
    if job.up_to_date:
        return "done" if complete else "deleted"
    if complete or not job.log.exists() or spent_by(job.log):
        return "remaining"
    if started is None:
        return "failed"
    if job.log.stat().st_mtime < started:
        return "remaining"
    return "failed" if error_in(job.log) else "running"


def error_in(log: Path) -> str | None:
    """The message of the error that ended a job, None where its log holds none."""
    errors = re.findall(r": ((?:unexpected )?error\b.*)", log.read_text(errors="replace"))
    return errors[-1] if errors else None


def last_line(log: Path) -> str:
    """The last line of a log, which says how far its job has come."""
    return log.read_text(errors="replace").strip().split("\n")[-1].strip() or "nothing logged yet"


def estimate(states: Mapping[Job, str]) -> tuple[float, int]:
    """Remaining work in seconds, and the number of jobs that cannot be estimated.

    A job counts the median time of finished jobs of the same rule and model, or of the same rule
    where none of that model has finished; a running job counts half. The work is as if jobs ran one
    by one.
    """
    times = defaultdict(list)
    for job, current in states.items():
        if current == "done" and (spent := spent_by(job.log)):
            times[job.rule, job.model].append(spent.wall)
            times[job.rule].append(spent.wall)
    work, unknown = 0.0, 0
    for job, current in states.items():
        known = times.get((job.rule, job.model)) or times.get(job.rule)
        if current in ("done", "deleted"):
            continue
        if known:
            work += median(known) / 2 if current == "running" else median(known)
        else:
            unknown += 1
    return work, unknown


def overview(jobs: Sequence[Job], started: float | None, parallel: int | None, now: float) -> str:
    """The state of a run as text. `parallel`: number of parallel jobs, None: as many as run now."""
    states = {job: state(job, started) for job in jobs}
    count = Counter(states.values())
    lines = []
    for job in _in_state("running", states):
        age = timedelta(seconds=round(now - job.log.stat().st_mtime))
        lines += [f"running  {job.rule} {job.name} (last heard {age} ago)"]
        lines += [f"         {last_line(job.log)}"]
    for job in _in_state("failed", states):
        lines += [f"failed   {job.rule} {job.name} (log: {job.log})"]
        lines += [f"         {error_in(job.log) or 'it was interrupted'}"]
    shown = [state for state in STATES if count[state] or state != "deleted"]
    parts = [
        [", ".join(f"{count[state]} {state}" for state in shown) + f"; {len(jobs)} jobs in all"],
        _by_rule(states, shown),
        lines,
        [_ending(states, started, parallel or max(1, count["running"]), now)],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _in_state(wanted: str, states: Mapping[Job, str]) -> list[Job]:
    return [job for job, current in states.items() if current == wanted]


def _by_rule(states: Mapping[Job, str], shown: Sequence[str]) -> list[str]:
    """A table of the rules that are not done, one line each."""
    count = Counter((job.rule, current) for job, current in states.items())
    open_rules = list(dict.fromkeys(job.rule for job in states if states[job] != "done"))
    if not open_rules:
        return []
    width = max(map(len, open_rules))
    rows = [[rule, *(str(count[rule, name] or "-") for name in shown)] for rule in open_rules]
    return [
        f"{name:<{width}}" + "".join(f"{cell:>11}" for cell in cells)
        for name, *cells in [["", *shown], *rows]
    ]


def _finished(deleted: Sequence[Path]) -> str:
    if not deleted:
        return "Finished."
    return (
        f"Finished, but {len(deleted)} result(s) were deleted since, such as {deleted[0]}. Nothing "
        f"that is left needs them; to make one again: snakemake --cores all --force {deleted[0]}"
    )


def _ending(states: Mapping[Job, str], started: float | None, parallel: int, now: float) -> str:
    """The sentence on the end of the run."""
    if set(states.values()) <= {"done", "deleted"}:
        deleted = _in_state("deleted", states)
        return _finished([path for job in deleted for path in job.outputs if not path.exists()])
    work, unknown = estimate(states)
    ahead = timedelta(seconds=round(work / parallel))
    text = f"Work ahead: about {ahead} with {parallel} job(s) side by side"
    if started is not None:
        text += f", so the end is expected at {datetime.fromtimestamp(now) + ahead:%Y-%m-%d %H:%M}"
    if unknown:
        text += f"; {unknown} more job(s) are not counted, as none of their rule has finished"
    return text + (". No run is active." if started is None else ".")
