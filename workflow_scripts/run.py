"""Run the workflow with a line of progress now and then; what it prints goes to a file of the run.

python workflow_scripts/run.py [--configfile config/mine.yaml] [any other arguments of snakemake]
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tracecal.errors import InputError
from tracecal.given import read_yaml
from tracecal.stages import Stages

# Seconds between two lines.
PAUSE = 10.0


def log_of(arguments: list[str]) -> Path:
    """Where all that a run prints goes, results/<run>/logs/run.log.

    Raises `InputError` where its configuration is not there or not YAML: Snakemake would not say
    which file, or where in it.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", default=["config/config.yaml"])
    named = [read_yaml(path) for path in parser.parse_known_args(arguments)[0].configfile]
    runs = [value["run"] for value in named if isinstance(value, dict) and "run" in value]
    return Path("results", Path(str(runs[-1])).name if runs else "", "logs/run.log")


def run(log: Path, arguments: list[str]) -> int:
    """Run Snakemake; return its exit status. Ctrl-C is passed on, and it ends in its own way."""
    stages, shown = Stages(), time.monotonic()
    before: list[str] = []
    side_by_side = os.cpu_count() or 1
    log.parent.mkdir(parents=True, exist_ok=True)
    # The group of processes is the terminal's, so Snakemake gets Ctrl-C too.
    signal.signal(signal.SIGINT, lambda *_: print("Stopping; finished work is kept.", flush=True))
    command = [sys.executable, "-m", "snakemake", *arguments]
    with (
        log.open("w", encoding="utf-8") as kept,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process,
    ):
        for line in process.stdout:
            kept.write(line)
            now = time.monotonic()
            error = stages.read(line, now)
            if stages.begun is None:
                before.append(line)
            elif error:
                print(error, flush=True)
            if stages.jobs and now - shown >= PAUSE:
                kept.flush()
                print(stages.line(now, side_by_side), flush=True)
                shown = now
    if process.returncode:
        # What stops a run before it begins is short.
        print(*(before if stages.begun is None else []), sep="", end="")
        print(f"The run did not finish; all it printed is in {log}.", flush=True)
    return process.returncode


if __name__ == "__main__":
    try:
        sys.exit(run(log_of(sys.argv[1:]), sys.argv[1:]))
    except InputError as error:
        sys.exit(f"error: {error}")
