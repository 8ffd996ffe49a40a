"""A run in a few lines: which steps are done, what goes on, and how long it may still take.

Read from what Snakemake prints while it runs, so that nothing of the run itself is touched.
"""

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from statistics import fmean

from tracecal.errors import InputError
from tracecal.given import read_yaml

_COUNT = re.compile(r"(\w+) +(\d+)$")
_STARTED = re.compile(r"Job (\d+): (.+)$")
_FINISHED = re.compile(r"Finished jobid: (\d+) \(Rule: (\w+)\)")
_FAILED = re.compile(r" +jobid: (\d+)$")
_ERROR = re.compile(
    r"\d\d:\d\d:\d\d \S+: (?:unexpected )?error\b|WorkflowError|\w*Error(?: in file |: )"
)


class Stages:
    """What a run has printed so far, line by line; times are in seconds."""

    def __init__(self) -> None:
        self.jobs: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.running: dict[str, tuple[float, str]] = {}
        self.took: dict[str, list[float]] = defaultdict(list)
        self.begun: float | None = None
        self._counting = False

    def read(self, line: str, now: float) -> str | None:
        """Take in one line; return it where a person should see it at once: a job's error."""
        line = line.rstrip("\n")
        if line.startswith("Job stats:"):
            self._counting, self.begun = not self.jobs, now if self.begun is None else self.begun
        elif self._counting and (row := _COUNT.match(line)):
            if row[1] == "total":
                self._counting = False
            else:
                self.jobs[row[1]] = int(row[2])
        elif job := _STARTED.match(line):
            self.running[job[1]] = (now, job[2])
        elif job := _FINISHED.match(line):
            began, _ = self.running.pop(job[1], (now, ""))
            self.done[job[2]] += 1
            self.took[job[2]].append(now - began)
        elif job := _FAILED.match(line):  # stands below "Error in rule"
            self.running.pop(job[1], None)
        elif _ERROR.match(line) and self.begun is not None:
            return line
        return None

    def left(self, side_by_side: int) -> float | None:
        """Seconds of work ahead, by the mean time of finished jobs of each rule; None at first.

        A rule of which no job has finished counts with the mean of all jobs.
        """
        times = [seconds for rule in self.took.values() for seconds in rule]
        if len(times) < 10:
            return None
        work = sum(
            (count - self.done[rule]) * fmean(self.took.get(rule) or times)
            for rule, count in self.jobs.items()
        )
        return work / side_by_side

    def line(self, now: float, side_by_side: int) -> str:
        """Where the run is: time, share of the steps, time left, and what goes on."""
        total, finished = sum(self.jobs.values()), sum(self.done.values())
        parts = [_clock(now - (now if self.begun is None else self.begun))]
        parts += [f"{finished:>4} of {total} steps ({100 * finished / max(1, total):.0f} %)"]
        left = self.left(side_by_side)
        parts += [f"about {_clock(left)} left" if left is not None else "estimating time left"]
        parts += sorted(message for _, message in self.running.values())[:2]
        return "  ".join(parts)


def log_of(arguments: Sequence[str]) -> Path:
    """Where all that a run prints goes, results/<run>/logs/run.log, by Snakemake's arguments.

    Raises `InputError` where a file of its configuration is not there or holds no settings in YAML:
    Snakemake would not say which file, or where in it.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", default=["config/config.yaml"])
    files = parser.parse_known_args(arguments)[0].configfile
    named = {path: read_yaml(path) for path in files}
    for path, value in named.items():
        if not isinstance(value, dict):
            raise InputError(f"{path} holds no settings; write keys and values, as run: mine")
    runs = [value["run"] for value in named.values() if "run" in value]
    return Path("results", Path(str(runs[-1])).name if runs else "", "logs/run.log")


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
