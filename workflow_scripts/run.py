"""Run the workflow with a line of progress every ten seconds; its output goes to the run's log.

python workflow_scripts/run.py [--configfile config/mine.yaml] [any other arguments of snakemake]
"""

import os
import signal
import sys
import time
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen

from tracecal.errors import InputError
from tracecal.stages import Stages, log_of

PAUSE = 10.0  # seconds between two lines


def run(log: Path, arguments: list[str]) -> int:
    """Run Snakemake; return its exit status. At Ctrl-C Snakemake stops in its own way."""
    stages, shown, cores = Stages(), time.monotonic(), os.cpu_count() or 1
    log.parent.mkdir(parents=True, exist_ok=True)
    # Snakemake is in the terminal's process group, so it gets Ctrl-C too.
    signal.signal(signal.SIGINT, lambda *_: print("Stopping; finished work is kept.", flush=True))
    command = [sys.executable, "-m", "snakemake", *arguments]
    with (
        log.open("w", encoding="utf-8") as kept,
        Popen(command, stdout=PIPE, stderr=STDOUT, text=True, errors="replace") as process,
    ):
        for line in process.stdout:
            kept.write(line)
            now = time.monotonic()
            if error := stages.read(line, now):
                print(error, flush=True)
            if stages.jobs and now - shown >= PAUSE:
                kept.flush()
                print(stages.line(now, cores), flush=True)
                shown = now
    if process.returncode:
        # What stops a run before its first job is short enough to show in full.
        output = log.read_text(encoding="utf-8") if stages.begun is None else ""
        print(f"{output}The run did not finish; its whole output is in {log}.", flush=True)
    return process.returncode


if __name__ == "__main__":
    try:
        sys.exit(run(log_of(sys.argv[1:]), sys.argv[1:]))
    except InputError as error:
        sys.exit(f"error: {error}")
