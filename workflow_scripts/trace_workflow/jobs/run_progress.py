"""The progress of a run: steps done, jobs running, and the time left."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import timedelta
from logging import ERROR, LogRecord
from pathlib import Path
from statistics import fmean


class RunProgress:
    """The state of a run after the events read so far; times are in seconds.

    `targets` are rules without outputs, such as `all`, which count as no step.
    """

    def __init__(self, targets: Sequence[str] = ()) -> None:
        self.targets = {"all", "total", *targets}
        self.jobs: Counter[str] = Counter()  # planned jobs by rule
        self.done: Counter[str] = Counter()
        self.running: dict[int, tuple[float, str, str]] = {}  # start, rule, name
        self.outputs: dict[int, Sequence[str]] = {}
        self.durations: dict[str, list[float]] = defaultdict(list)
        self.start: float | None = None
        self.cores = 1
        self.job_failed = False
        self.failures: set[str] = set()
        self.first_labels: list[Path] = []  # until they are reported
        self.labels_reported = False

    def read(self, record: LogRecord, now: float) -> str | None:
        """Update the state by one event; return the text of an error to show at once."""
        match str(getattr(record, "event", "")):
            case "run_info":
                # A first plan, or one that follows a finished plan.
                steps = {rule: n for rule, n in record.stats.items() if rule not in self.targets}
                plan = Counter(steps)
                self.start = now if self.start is None else self.start
                self.jobs = self.done + plan if self.planned_done else self.jobs | plan
            case "resources_info":
                self.cores = getattr(record, "cores", None) or self.cores
            case "job_info" if record.rule_name not in self.targets and self.jobs:
                wildcards = (getattr(record, "wildcards", None) or {}).values()
                name = " ".join([record.rule_name, *filter(None, wildcards)])
                self.running[record.jobid] = (now, record.rule_name, name)
                self.outputs[record.jobid] = getattr(record, "output", None) or ()
                # A job that no plan announced is a step, too.
                running = sum(record.rule_name == rule for _, rule, _ in self.running.values())
                started = self.done[record.rule_name] + running
                self.jobs[record.rule_name] = max(self.jobs[record.rule_name], started)
            case "job_finished" if record.job_id in self.running:
                start, rule, _ = self.running.pop(record.job_id)
                self.done[rule] += 1
                self.durations[rule].append(now - start)
                if rule == "label_answers" and not self.labels_reported:
                    self.first_labels += map(Path, self.outputs[record.job_id])
                    self.labels_reported = True
            case "job_error":
                self.running.pop(record.jobid, None)
                self.job_failed = True
                failure = _failure(record)
                is_new = failure not in self.failures
                self.failures.add(failure)
                return failure if is_new else None  # of a further attempt
            case _ if record.levelno >= ERROR and self.start is not None:
                # Snakemake's other errors about a failed job name its command, and no reason.
                about_job = self.job_failed or record.getMessage().startswith("RuleException")
                return None if about_job else record.getMessage()
        return None

    @property
    def planned_done(self) -> bool:
        """Whether every planned job is done, as before the first plan."""
        return self.done.total() >= self.jobs.total()

    def time_left(self, now: float) -> float | None:
        """Seconds left on the cores of this run; None before ten jobs finish.

        At least as long as one of the running jobs still takes.
        """
        if self.done.total() < 10:
            return None
        expected = {rule: self._expected(rule) for rule in self.jobs}
        work = sum((count - self.done[rule]) * expected[rule] for rule, count in self.jobs.items())
        longest = 0.0
        for start, rule, _ in self.running.values():
            elapsed = now - start
            rest = max(expected[rule] - elapsed, elapsed / 4)
            work += rest - expected[rule]
            longest = max(longest, rest)
        return max(work / self.cores, longest)

    def _expected(self, rule: str) -> float:
        """Expected seconds of an unfinished job of `rule`: the mean of those that finished.

        Before one has, it is between median and mean of all jobs, of which few take much longer
        than the others: the square of the mean root.
        """
        if durations := self.durations[rule]:
            return fmean(durations)
        return fmean(math.sqrt(time) for times in self.durations.values() for time in times) ** 2

    def line(self, now: float) -> str:
        """A line of progress: time, share of steps done, time left, and up to two running jobs."""
        total, done = self.jobs.total(), self.done.total()
        elapsed = _clock(now - (now if self.start is None else self.start))
        if self.planned_done:
            return f"{elapsed}  {done:>4} steps done, looking for what follows"
        share = min(99, round(100 * done / total))  # 100 only when all is done
        time_left = self.time_left(now)
        rest = "estimating time left" if time_left is None else f"about {_clock(time_left)} left"
        names = sorted(name for _, _, name in list(self.running.values()))
        return "  ".join([elapsed, f"{done:>4} of {total} steps ({share} %)", rest, *names[:2]])


def _failure(record: LogRecord) -> str:
    """Which job failed, and why, by its own log or by how its command ended."""
    logs = [path for path in map(Path, record.log or ()) if path.exists()]
    if reason := next(filter(None, map(error_in, logs)), None):
        return f"{record.rule_name} failed: {reason}"
    command = getattr(record, "shellcmd", None)
    how = "its command ended with an error" if command else "it ended without an error in its log"
    lines = [line for log in logs for line in reversed(log.read_text(errors="replace").split("\n"))]
    if line := next(filter(None, map(str.strip, lines)), None):
        return f"{record.rule_name} failed: {how}; its log ends with: {line}"
    return f"{record.rule_name} failed: {how}; the run's log has what it printed"


def error_in(log: Path) -> str | None:
    """The message of the error that ended a job; None where its log holds none."""
    errors = re.findall(r": ((?:unexpected )?error\b.*)", log.read_text(errors="replace"))
    return errors[-1] if errors else None


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
