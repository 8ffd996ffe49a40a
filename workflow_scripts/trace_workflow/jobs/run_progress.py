"""Progress of a run: steps done, jobs running, time left, and the first answers."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import timedelta
from logging import ERROR, LogRecord
from pathlib import Path
from statistics import fmean

# Seconds that a job of each rule takes on a core of its own: the mean of the demo's. Rules that
# take less than 1.5 s count as UNKNOWN.
DEMO = {
    "analyse": 2.0,
    "ask_p_true": 16,
    "ask_verbalized": 21,
    "audit_traces": 6.2,
    "calibrate": 2.6,
    "calibrate_on_subset": 2.5,
    "capture_hidden": 13,
    "compare_samples": 6.3,
    "control_risk": 1.7,
    "cross_task_transfer": 2.8,
    "draw_figure": 2.3,
    "draw_samples": 25,
    "generate": 35,
    "learn_lars": 7.1,
    "learn_probe": 3.6,
    "make_explorer": 2.2,
    "make_world": 3.6,
    "search_beams": 21,
    "summarise": 2.0,
    "train_encoder": 16,
    "train_model": 11,
    "train_tokenizer": 5.7,
    "unpack_encoder": 1.8,
    "unpack_model": 26,
    "weigh_mars": 5.5,
    "weigh_token_sar": 12,
}
UNKNOWN = 1.0
# Seconds of work after which this run's pace counts as much as the demo's.
SLOW_START = 60.0


class RunProgress:
    """The state of a run by the events so far; times are in seconds.

    `targets` are rules that make nothing, such as `all`, and count as no step. `model` is the one
    whose first labels are told; None: any.
    """

    def __init__(self, targets: Sequence[str] = (), model: str | None = None) -> None:
        self.model = model
        self.targets = {"all", *targets}
        self.jobs: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.running: dict[int, tuple[float, str, str]] = {}  # start, rule, message
        self.outputs: dict[int, Sequence[str]] = {}
        self.took: dict[str, list[float]] = defaultdict(list)
        self.begun: float | None = None
        self.parallel = 1
        self.failed = False
        self.labelled: list[Path] = []  # the labels that were made first, until they are shown
        self.told = False

    def read(self, record: LogRecord, now: float) -> str | None:
        """Update the state by one event; return the text of an error to show at once."""
        match str(getattr(record, "event", "")):
            case "run_info" if not self.jobs:
                self.begun = now
                self.jobs.update(record.stats)
                for name in (*self.targets, "total"):
                    self.jobs.pop(name, None)
            case "resources_info":
                self.parallel = getattr(record, "cores", None) or self.parallel
            case "job_info" if record.rule_name in self.jobs:
                message = record.rule_msg or record.rule_name
                self.running[record.jobid] = (now, record.rule_name, message)
                self.outputs[record.jobid] = getattr(record, "output", None) or ()
            case "job_finished" if record.job_id in self.running:
                began, rule, _ = self.running.pop(record.job_id)
                self.done[rule] += 1
                self.took[rule].append(now - began)
                if rule == "label_answers" and not self.told:
                    self._labels(self.outputs[record.job_id])
            case "job_error":
                self.running.pop(record.jobid, None)
                self.failed = True
                return _failure(record)
            case _ if record.levelno >= ERROR and self.begun is not None:
                # What else Snakemake says of a failed job names its command, and no reason.
                of_job = self.failed or record.getMessage().startswith("RuleException")
                return None if of_job else record.getMessage()
        return None

    def _labels(self, outputs: Sequence[str]) -> None:
        made = [path for path in map(Path, outputs) if self.model in (None, path.parent.name)]
        self.labelled += made
        self.told = bool(made)

    def left(self, now: float) -> float | None:
        """Seconds left on the cores of this run; None before ten jobs finish.

        At least as long as one of the running jobs still takes.
        """
        if self.done.total() < 10:
            return None
        expected = {rule: self._expected(rule) for rule in self.jobs}
        work = sum((count - self.done[rule]) * expected[rule] for rule, count in self.jobs.items())
        longest = 0.0
        for began, rule, _ in self.running.values():
            elapsed = now - began
            rest = max(expected[rule] - elapsed, elapsed / 4)
            work += rest - expected[rule]
            longest = max(longest, rest)
        return max(work / self.parallel, longest)

    def _expected(self, rule: str) -> float:
        """Seconds that a job of `rule` takes that has not finished.

        Jobs of one rule differ as their models do, so that the first to finish say little of the
        others: at the start what the demo's took, at this run's pace, less what the finished ones
        took; towards the end more and more the mean of the finished.
        """
        took, count, usual = self.took[rule], self.jobs[rule], DEMO.get(rule, UNKNOWN)
        planned = usual * self._pace()
        if not took or len(took) == count:
            return planned
        others = (count * planned - sum(took)) / (count - len(took))
        share = len(took) / count
        return (1 - share) * max(others, min(took)) + share * fmean(took)

    def _pace(self) -> float:
        """How many times as long as in the demo the jobs take here; near 1 while few finished."""
        usual = sum(DEMO.get(rule, UNKNOWN) * len(took) for rule, took in self.took.items())
        return (SLOW_START + sum(map(sum, self.took.values()))) / (SLOW_START + usual)

    def line(self, now: float) -> str:
        """A line of progress: time, share of steps done, time left, and up to two running jobs."""
        total, finished = sum(self.jobs.values()), sum(self.done.values())
        parts = [_clock(now - (now if self.begun is None else self.begun))]
        parts += [f"{finished:>4} of {total} steps ({100 * finished / max(1, total):.0f} %)"]
        left = self.left(now)
        parts += [f"about {_clock(left)} left" if left is not None else "estimating time left"]
        parts += sorted(message for *_, message in list(self.running.values()))[:2]
        return "  ".join(parts)


def _failure(record: LogRecord) -> str:
    """Which job failed, and why by its own log."""
    logs = [Path(log) for log in record.log or ()]
    reasons = [error_in(log) for log in logs if log.exists()]
    return f"{record.rule_name} failed: {next(filter(None, reasons), 'it logged no error')}"


def error_in(log: Path) -> str | None:
    """The message of the error that ended a job, None where its log holds none."""
    errors = re.findall(r": ((?:unexpected )?error\b.*)", log.read_text(errors="replace"))
    return errors[-1] if errors else None


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
