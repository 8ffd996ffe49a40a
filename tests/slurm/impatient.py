"""Snakemake, except that it asks SLURM for news every second.

By itself its plugin waits 10 seconds longer after each answer without any, up to 3 minutes, which
suits jobs of hours and not those of seconds. While it asks it has no list of jobs, and Ctrl-C would
cancel none: rare where it asks seldom, so here it is let finish first.
"""

import sys

from snakemake.cli import main
from snakemake_executor_plugin_slurm import Executor


def cancel(executor: Executor) -> None:
    executor.shutdown()
    executor.cancel_jobs(executor.active_jobs)


Executor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, seconds: None)
Executor.cancel = cancel

if __name__ == "__main__":
    sys.exit(main())
