"""Snakemake's logger plugin `trace`: a line of progress every ten seconds, and errors at once.

`python workflow_scripts run` uses it: Snakemake finds it by its name below PYTHONPATH.
"""

import os
import sys
import time
from dataclasses import dataclass, field
from logging import LogRecord
from threading import Event, Thread

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

from trace_workflow.jobs.run_progress import RunProgress

EVERY = 10.0  # seconds between two lines


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    descriptor: int = field(
        default=2, metadata={"help": "The open file descriptor that lines go to", "type": int}
    )
    model: str = field(
        default="",
        metadata={"help": "The model whose first labels are told of; empty: any", "type": str},
    )


class LogHandler(LogHandlerBase):
    """Reads every event of Snakemake's log, which itself is shown as without this plugin."""

    writes_to_stream = writes_to_file = needs_rulegraph = False
    has_filter = has_formatter = True

    def __post_init__(self) -> None:
        self.progress = RunProgress(sys.argv[1:], self.settings.model or None)
        self.lines = os.fdopen(self.settings.descriptor, "w", buffering=1, encoding="utf-8")
        self.ended = Event()
        Thread(target=self.show, daemon=True).start()

    def emit(self, record: LogRecord) -> None:
        if error := self.progress.read(record, time.monotonic()):
            self.lines.write(f"{error}\n")

    def show(self) -> None:
        while not self.ended.wait(EVERY):
            if self.progress.jobs:
                self.lines.write(f"{self.progress.line(time.monotonic())}\n")
            while self.progress.labelled:
                from trace_workflow.labels.first_labels import first_finding  # which loads Polars

                self.lines.write(f"{first_finding(self.progress.labelled.pop())}\n")

    def close(self) -> None:
        self.ended.set()
        super().close()
