"""Staging in a process of its own, whose hub is one on loopback."""

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "workflow_scripts"
PROGRAM = """
import json, logging, sys
from tracecal.errors import InputError
from tracecal.io.log import LOGGER
from trace_workflow.models.staging import hub
from trace_workflow.models.staging.hub_rows import stage_rows
from trace_workflow.models.staging.hub import stage_model
hub.PAUSES = (0.0, 0.0)
LOGGER.addHandler(logging.StreamHandler(sys.stderr))
LOGGER.setLevel("INFO")
results = []
for kind, *arguments in json.load(sys.stdin):
    try:
        results.append(["ok", {"model": stage_model, "rows": stage_rows}[kind](*arguments)])
    except InputError as error:
        results.append(["error", str(error)])
print(json.dumps(results))
"""


def environment(url: str, home: Path, **variables: str) -> dict[str, str]:
    """This process's environment, with the hub at `url` and its cache in `home`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    hub = {"HF_ENDPOINT": url, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
    # A leftover proxy must not stand between us and loopback.
    return kept | hub | {"NO_PROXY": "127.0.0.1,localhost"} | variables


class Client:
    """Calls the staging functions; keeps everything that was printed."""

    def __init__(self, url: str, home: Path, **variables: str) -> None:
        self.environment = environment(url, home, **variables, PYTHONPATH=str(SCRIPTS))
        self.printed = ""

    def stage(self, *calls: list) -> list[list[str]]:
        """['ok', commit] or ['error', sentence] of each call."""
        return self.call(PROGRAM, calls)

    def call(self, program: str, argument: object) -> list:
        """What `program` prints, given `argument` as JSON; JSON too."""
        process = subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps(argument),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.printed += process.stdout + process.stderr
        assert process.returncode == 0, process.stderr[-4000:]
        return json.loads(process.stdout)
