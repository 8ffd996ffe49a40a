"""Run the workflow with a line of progress every ten seconds; its output goes to the run's log.

python workflow_scripts run [--verify] [--configfile config/mine.yaml] [arguments of snakemake]

The run reads a copy of the configuration, which is made when it starts. --verify looks at every
result first and makes those again that are missing, damaged, or made by other settings or code.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from trace_workflow.config.frozen import OPTIONS, freeze, merged
from trace_workflow.config.selection import load_run
from tracecal.errors import InputError
from tracecal.io.files import DOUBTED

ROOT = Path(__file__).resolve().parents[3]
SNAKEMAKE = [sys.executable, "-m", "snakemake"]


def frozen(arguments: Sequence[str]) -> tuple[list[str], Path, str]:
    """Arguments of Snakemake with copies in place of the configuration files, the run's folder, and
    its main study's model.

    Raises `InputError` where the configuration is invalid.
    """
    given, others = OPTIONS.parse_known_args(arguments)
    files = given.configfile or ["config/config.yaml"]
    value = merged(files, given.config)
    config = load_run(value, ", ".join(files), ROOT).config
    folder = Path("results") / config.run
    copies = freeze(files, value, ROOT, folder / "work/configs")
    settings = ["--config", *given.config] if given.config else []
    return [*others, *settings, "--configfile", *map(str, copies)], folder, config.study.main.model


def doubted(arguments: Sequence[str]) -> list[str]:
    """The results of a run that must be made again; Snakemake plans all and starts nothing."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as listed:
        planned = subprocess.run(
            [*SNAKEMAKE, *arguments, "--dry-run", "--forceall"],
            env=os.environ | {DOUBTED: listed.name},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if planned.returncode:
            raise InputError(planned.stdout.strip())
        return sorted(set(listed.read().splitlines()))


def run(arguments: Sequence[str], log: Path, model: str) -> int:
    """Snakemake's exit status. It and its jobs write to `log`; its progress is printed, with what
    the first labels of `model` tell.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    paths = filter(None, [str(ROOT / "workflow_scripts"), os.getenv("PYTHONPATH")])
    progress, written = os.pipe()
    logger = ["--logger", "trace", "--logger-trace-descriptor", str(written)]
    logger += ["--logger-trace-model", model]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*SNAKEMAKE, *arguments, *logger],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            pass_fds=[written],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    os.close(written)
    # A terminal's Ctrl-C reaches Snakemake too, which then ends its jobs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    begun = False
    with os.fdopen(progress, encoding="utf-8") as lines:
        for line in lines:
            begun = True
            print(line, end="", flush=True)
    if process.wait():
        output = "" if begun else log.read_text(encoding="utf-8")
        print(f"{output}The run did not finish; its whole output is in {log}.")
    return process.returncode


if __name__ == "__main__":
    verify = "--verify" in sys.argv
    try:
        arguments, folder, model = frozen([given for given in sys.argv[1:] if given != "--verify"])
        if verify and (again := doubted(arguments)):
            print(*(f"{path} is made again" for path in again), sep="\n", flush=True)
            arguments += ["--forcerun", *again]
        if {"-n", "--dry-run", "--dryrun"}.intersection(arguments):
            sys.exit(subprocess.call([*SNAKEMAKE, *arguments]))
        sys.exit(run(arguments, folder / "logs/run.log", model))
    except InputError as error:
        sys.exit(f"error: {error}")
    except OSError as error:  # a full disk, a missing permission
        sys.exit(f"error: {error.filename or 'a file of the run'}: {error.strerror}.")
