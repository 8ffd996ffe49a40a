"""Snakemake, except that it asks SLURM for news every second.

By itself its plugin waits 10 seconds longer after each answer without any, up to 3 minutes, which
suits jobs of hours and not those of seconds.
"""

import sys

from snakemake.cli import main
from snakemake_executor_plugin_slurm import Executor

Executor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, seconds: None)

if __name__ == "__main__":
    sys.exit(main())
