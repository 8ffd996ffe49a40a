"""Run the workflow with a line of progress every ten seconds; its output goes to the run's log.

python workflow_scripts run [--configfile config/mine.yaml] [arguments of snakemake]
"""

import os
import sys
import time
from threading import Thread

from snakemake import cli, logging

from tracecal.errors import InputError
from tracecal.explore.first import first_finding
from tracecal.jobs.run_progress import RunProgress, log_of

PROGRESS, TERMINAL = RunProgress(sys.argv[1:]), os.fdopen(os.dup(1), "w", buffering=1)


def follow(record) -> bool:
    """A filter of Snakemake's logger that lets all events pass, and shows errors at once."""
    if error := PROGRESS.read(record, time.monotonic()):
        TERMINAL.write(f"{error}\n")
    return True


def show_progress() -> None:
    while time.sleep(10) is None:
        if PROGRESS.jobs:
            TERMINAL.write(f"{PROGRESS.line(time.monotonic())}\n")
        while PROGRESS.labelled:
            TERMINAL.write(f"{first_finding(PROGRESS.labelled.pop())}\n")


if __name__ == "__main__":
    try:
        log = log_of(sys.argv[1:])
    except InputError as error:
        sys.exit(f"error: {error}")
    log.parent.mkdir(parents=True, exist_ok=True)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1), os.dup2(1, 2)
    logging.logger.addFilter(follow)
    Thread(target=show_progress, daemon=True).start()
    try:
        cli.main(sys.argv[1:])
    except SystemExit as end:
        if end.code:
            output = log.read_text(encoding="utf-8") if PROGRESS.begun is None else ""
            TERMINAL.write(f"{output}The run did not finish; its whole output is in {log}.\n")
        raise
