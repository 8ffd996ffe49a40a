"""Submitting the workflow to SLURM, and asking SLURM what came."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

from support.checkout import Checkout
from trace_workflow.commands.run import frozen

IMPATIENT = Path(__file__).with_name("impatient.py")
PATIENCE = 1800  # seconds for all that a run does: a machine may be busy with other things


@dataclass(frozen=True)
class Submitted:
    """A job as SLURM knows it; `name` is Snakemake's comment: rule and wildcards."""

    number: int
    name: str
    state: str
    partition: str
    gpus: int
    gpu_type: str | None
    memory_mb: int
    minutes: int
    node: str

    @property
    def rule(self) -> str:
        return self.name.removeprefix("rule_").split("_wildcards_")[0]


def submitted() -> list[Submitted]:
    """Every job since the cluster started, in the order of submission."""
    command = ["scontrol", "show", "job", "--oneliner"]
    while "JobState=COMPLETING" in (listed := subprocess.check_output(command, text=True)):
        time.sleep(0.2)  # until it is known how the job ended
    return sorted(
        (_parsed(line) for line in listed.splitlines() if line.startswith("JobId=")),
        key=lambda job: job.number,
    )


def _parsed(line: str) -> Submitted:
    field = dict(re.findall(r"(\S+?)=(\S*)", line))
    gpus = re.fullmatch(r"gres:gpu(?::([a-z]\w*))?:(\d+)", field.get("TresPerJob", "gres:gpu:0"))
    memory = re.fullmatch(r"([\d.]+)([MG])", field["MinMemoryNode"])
    days, hours, minutes, _ = re.fullmatch(
        r"(?:(\d+)-)?(\d+):(\d+):(\d+)", field["TimeLimit"]
    ).groups(default=0)
    return Submitted(
        number=int(field["JobId"]),
        name=field["Comment"],
        state=field["JobState"],
        partition=field["Partition"],
        gpus=int(gpus[2]),
        gpu_type=gpus[1],
        memory_mb=round(float(memory[1]) * {"M": 1, "G": 1024}[memory[2]]),
        minutes=(int(days) * 24 + int(hours)) * 60 + int(minutes),
        node=field["NodeList"],
    )


class Submission:
    """A run with profiles/slurm that goes on, within a `with` at most; it reads a frozen copy."""

    def __init__(self, checkout: Checkout, config: Path, *arguments: str) -> None:
        self.log = checkout.root / "snakemake.log"
        self.deadline = time.monotonic() + PATIENCE
        with chdir(checkout.root):
            given, *_ = frozen([*arguments, "--configfile", str(config)])
        self.process = subprocess.Popen(
            [
                # What a shell started in the background ignores Ctrl-C, and so would its children.
                *("env", "--default-signal=INT"),
                *(sys.executable, IMPATIENT, "--workflow-profile", "profiles/slurm", *given),
            ],
            cwd=checkout.root,
            stdout=self.log.open("w"),
            stderr=subprocess.STDOUT,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()

    def wait_for(self, happened: Callable[[], bool]) -> None:
        """Until something has happened; fails where the run ends before."""
        while not happened():
            if self.process.poll() is not None or time.monotonic() > self.deadline:
                pytest.fail(f"it did not happen:\n{self.output()[-6000:]}")
            time.sleep(0.5)

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """The exit status, once the run has ended."""
        try:
            return self.process.wait(timeout=max(0, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            pytest.fail(f"it does not end:\n{self.output()[-6000:]}")

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")
