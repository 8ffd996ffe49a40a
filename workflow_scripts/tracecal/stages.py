"""Progress of a run, read from Snakemake's output: steps done, jobs running, time left."""

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
    """The state of a run by what it has printed so far; times are in seconds."""

    def __init__(self) -> None:
        self.jobs: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.running: dict[str, tuple[float, str]] = {}
        self.took: dict[str, list[float]] = defaultdict(list)
        self.begun: float | None = None
        self._counting = False

    def read(self, line: str, now: float) -> str | None:
        """Update the state by one line; return the line where it is an error to show at once."""
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
        """Seconds left, from the mean time of each rule's finished jobs; None before ten finish.

        A rule without a finished job counts with the mean of all jobs.
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
        """A line of progress: time, share of steps done, time left, and up to two running jobs."""
        total, finished = sum(self.jobs.values()), sum(self.done.values())
        parts = [_clock(now - (now if self.begun is None else self.begun))]
        parts += [f"{finished:>4} of {total} steps ({100 * finished / max(1, total):.0f} %)"]
        left = self.left(side_by_side)
        parts += [f"about {_clock(left)} left" if left is not None else "estimating time left"]
        parts += sorted(message for _, message in self.running.values())[:2]
        return "  ".join(parts)


def log_of(arguments: Sequence[str]) -> Path:
    """The file for a run's output, results/<run>/logs/run.log, by Snakemake's arguments.

    Raises `InputError` where a configuration file is missing or holds no mapping in YAML: Snakemake
    would not say which file, or where in it.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", default=["config/config.yaml"])
    files = parser.parse_known_args(arguments)[0].configfile
    run = ""
    for path in files:
        settings = read_yaml(path)
        if not isinstance(settings, dict):
            raise InputError(f"{path} holds no settings; write keys and values, as run: mine")
        run = settings.get("run", run)
    return Path("results", Path(str(run)).name, "logs/run.log")


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
