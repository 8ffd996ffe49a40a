"""Run the workflow with a line of progress now and then; everything it prints goes to a file.

python workflow_scripts/run.py LOG [any arguments of snakemake]
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tracecal.stages import Stages

# Seconds between two lines.
PAUSE = 10.0


def run(log: Path, arguments: list[str]) -> int:
    """Run Snakemake; return its exit status. Ctrl-C is passed on, and it ends in its own way."""
    stages, shown = Stages(), time.monotonic()
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
            if error := stages.read(line, now):
                print(error, flush=True)
            if stages.jobs and now - shown >= PAUSE:
                kept.flush()
                print(stages.line(now, side_by_side), flush=True)
                shown = now
    if process.returncode:
        print(f"The run did not finish; all it printed is in {log}.", flush=True)
    return process.returncode


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
