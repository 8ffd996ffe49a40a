"""Snakemake's logger plugin `trace`: a line of progress every minute, and errors at once.

`python workflow_scripts run` uses it; Snakemake finds it by its name below PYTHONPATH. The plugin
`rich` (0.5.1) shows the steps done and the time that passed, and no time left.
"""

import os
import sys
import time
from dataclasses import dataclass, field
from logging import LogRecord
from pathlib import Path
from threading import Event, Thread

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

from trace_workflow.jobs.run_progress import RunProgress

SECONDS_BETWEEN_LINES, TICK = 60.0, 0.5


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """The options of Snakemake that begin with --logger-trace-."""

    descriptor: int = field(
        default=2, metadata={"help": "The open file descriptor that lines go to", "type": int}
    )
    columns: int = field(
        default=0,
        metadata={"help": "Columns of a terminal, where one line renews itself", "type": int},
    )


class LogHandler(LogHandlerBase):
    """Reads every event of Snakemake's log, and leaves what Snakemake shows as it is."""

    writes_to_stream = writes_to_file = needs_rulegraph = False
    has_filter = has_formatter = True

    def __post_init__(self) -> None:
        self.progress = RunProgress(sys.argv[1:])
        self.lines = os.fdopen(self.settings.descriptor, "w", buffering=1, encoding="utf-8")
        self.closed = Event()
        Thread(target=self.show, daemon=True).start()

    def emit(self, record: LogRecord) -> None:
        """Read an event, and print its error, if any."""
        if error := self.progress.read(record, time.monotonic()):
            self.lines.write(f"{error}\n")

    def show(self) -> None:
        """Print lines of progress until the run ends; those of a terminal end in a return."""
        columns, due = self.settings.columns, 0.0
        while not self.closed.wait(TICK):
            now = time.monotonic()
            if self.progress.jobs and (columns or now >= due):
                line, due = self.progress.line(now), now + SECONDS_BETWEEN_LINES
                self.lines.write(f"{line[: columns - 1]}\r" if columns else f"{line}\n")
            while self.progress.first_labels:
                self.describe(self.progress.first_labels.pop())

    def describe(self, labels: Path) -> None:
        """Print what the first labels say."""
        from trace_workflow.analyses.first_labels import describe_first_labels  # slow to load

        self.lines.write(f"{describe_first_labels(labels)}\n")

    def close(self) -> None:
        """End the lines with the run."""
        self.closed.set()
        super().close()
