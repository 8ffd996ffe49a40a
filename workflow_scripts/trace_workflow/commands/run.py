"""Run the workflow with a line of progress, one every minute where that is no terminal; its output
goes to the run's log.

python workflow_scripts run [--verify] [--configfile config/mine.yaml] [arguments of snakemake]

The run reads a copy of the configuration, which is made when it starts. --verify looks at every
result first and makes those again that are missing, damaged, or made by other settings or code. So
does a run that finds results of another name or configuration, of which Snakemake has no record.
On this machine no more jobs run than fit into its memory, unless --resources says otherwise.
"""

import argparse
import errno
import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

from trace_workflow.config.frozen import OPTIONS, config_sources, freeze, merged
from trace_workflow.config.job_resources import machine_memory_mb
from trace_workflow.config.run import Run, load_run
from trace_workflow.jobs.code_hash import SCRIPTS
from tracecal.errors import InputError
from tracecal.io.files import DOUBTED
from tracecal.io.input_files import read_yaml
from tracecal.io.log import printable

ROOT = SCRIPTS.parent
SNAKEMAKE = [sys.executable, "-m", "snakemake"]
SNAKEMAKES_EXECUTORS = {"local", "dryrun", "touch"}
# A file below a run's folder whose results may be those of another run.
COPIED = "work/copied"
JOBS = "Job stats:"  # what Snakemake prints before it starts jobs
PLANNED = "rule resolve_config:"  # what a dry run prints of the job that writes the configuration
EXECUTOR = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
EXECUTOR.add_argument("--executor", "-e")
EXECUTOR.add_argument("--profile", action="append")
EXECUTOR.add_argument("--workflow-profile", action="append")
EXECUTOR.add_argument("--resources", "--res", nargs="+")
CLEARED = "\r\x1b[K"  # back to the start of a terminal's line, which is emptied
LOCKED = "Directory cannot be locked"  # what Snakemake says after a kill


def frozen(arguments: Sequence[str]) -> tuple[list[str], Path, Run]:
    """Arguments of Snakemake with copies in place of the configuration files, the run's folder, and
    the run.

    Raises `InputError` where the configuration is invalid, and `OSError` where a result is a link
    to itself.
    """
    options, rest = OPTIONS.parse_known_args(arguments)
    files = options.configfile or ["config/config.yaml"]
    value = merged(files, options.config)
    run = load_run(value, config_sources(files, arguments), ROOT)
    folder = Path("results") / run.config.run
    require_links(folder)
    copies = freeze(files, options.config, value, ROOT, folder / "work/configs")
    return [*rest, "--configfile", *map(str, copies)], folder, run


def require_links(folder: Path) -> None:
    """Raise `OSError` for a result that is a link to itself: Snakemake would print a traceback."""
    for path in (folder, *folder.rglob("*")):
        if path.is_symlink():
            with suppress(FileNotFoundError):
                path.stat()


def profiles(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The profiles that Snakemake reads, of which a workflow profile wins."""
    general = options.profile or [os.getenv("SNAKEMAKE_PROFILE", "none")]
    specific = options.workflow_profile or [str(ROOT / "profiles/default")]
    paths = [Path(name) / "config.yaml" for name in [*specific, *general]]
    return [read_yaml(path) for path in paths if path.is_file()]


def executors(options: argparse.Namespace) -> list[str]:
    """The executors that the arguments or a profile name."""
    of_profiles = [profile.get("executor") for profile in profiles(options)]
    return [*filter(None, [options.executor, *of_profiles])]


def require_executor(arguments: Sequence[str]) -> None:
    """Raise `InputError` where the plugin of the executor that arguments or a profile name is not
    installed: Snakemake would print all of its options."""
    options, _ = EXECUTOR.parse_known_args(arguments)
    for executor in executors(options):
        plugin = f"snakemake_executor_plugin_{executor.replace('-', '_')}"
        if executor not in SNAKEMAKES_EXECUTORS and find_spec(plugin) is None:
            listed = ROOT / f"envs/requirements-{executor}.txt"
            package = f"-r {listed.relative_to(ROOT)}" if listed.exists() else plugin
            raise InputError(
                f"Snakemake's plugin for the executor {executor!r} is not installed here: "
                f"pip install {package.replace('_', '-')}"
            )


def with_memory(arguments: Sequence[str]) -> list[str]:
    """Arguments with the machine's memory as a resource, so that no more jobs run than fit into it.

    As they are where jobs run elsewhere, or where the arguments state resources. An option replaces
    the profile's resources, so these are stated, too.
    """
    options, _ = EXECUTOR.parse_known_args(arguments)
    if options.resources or not {*executors(options)} <= SNAKEMAKES_EXECUTORS:
        return [*arguments]
    stated = next(
        (profile["resources"] for profile in profiles(options) if "resources" in profile), []
    )
    if any(str(resource).startswith("mem_mb=") for resource in stated):
        return [*arguments]
    memory = f"mem_mb={machine_memory_mb()}"
    return [*arguments, "--resources", *map(str, stated), memory]


def doubted(arguments: Sequence[str]) -> list[str]:
    """The results of a run that must be made again; Snakemake plans all and starts nothing."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as paths:
        plan = subprocess.run(
            [*SNAKEMAKE, *arguments, "--dry-run", "--forceall"],
            env=os.environ | {DOUBTED: paths.name},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if plan.returncode:
            raise InputError(plan.stdout.strip())
        return sorted(set(paths.read().splitlines()))


def is_copied(arguments: Sequence[str], folder: Path, resolved: str) -> bool:
    """Whether results are there that were made under another name or configuration than `resolved`,
    and that Snakemake would leave, as a folder that was copied has no records.
    """
    config = folder / "config.yaml"
    if (folder / COPIED).exists():
        return True
    if not config.is_file() or is_resolved(folder, resolved):
        return False
    settings = arguments[arguments.index("--configfile") :]  # the last option that `frozen` gives
    plan = subprocess.run(
        [*SNAKEMAKE, str(config), "--dry-run", *settings], capture_output=True, text=True
    )
    return plan.returncode == 0 and PLANNED not in plan.stdout


def is_resolved(folder: Path, resolved: str) -> bool:
    """Whether the configuration beside the results is this one."""
    config = folder / "config.yaml"
    return config.is_file() and config.read_text(encoding="utf-8", errors="replace") == resolved


def opened_log(log: Path) -> TextIO:
    """An empty log, which no other run writes to. Raises `InputError` where one does."""
    log.parent.mkdir(parents=True, exist_ok=True)
    output = log.open("a", encoding="utf-8")
    try:
        # Snakemake and its jobs inherit the lock.
        fcntl.flock(output, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise InputError(
                f"another run, or a job that one left, writes to {log}: wait until it ends, or "
                "give 'run' another name in the configuration."
            ) from None  # others: a file system without locks
    output.truncate(0)
    return output


def run(arguments: Sequence[str], log: Path) -> int:
    """Snakemake's exit status. It and its jobs write to `log`; its progress is printed."""
    paths = filter(None, [str(SCRIPTS), os.getenv("PYTHONPATH")])
    reading_end, writing_end = os.pipe()
    logger = ["--logger", "trace", "--logger-trace-descriptor", str(writing_end)]
    on_terminal = sys.stdout.isatty()
    if on_terminal:
        logger += ["--logger-trace-columns", str(shutil.get_terminal_size().columns)]
    with opened_log(log) as output:
        process = subprocess.Popen(
            [*SNAKEMAKE, *arguments, *logger],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            pass_fds=[writing_end],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    os.close(writing_end)
    # A terminal's Ctrl-C reaches Snakemake too, which then ends its jobs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    printed = False
    with os.fdopen(reading_end, encoding="utf-8", newline="") as lines:
        for line in lines:
            printed = True
            text, end = printable(line.rstrip("\r\n")), "" if line.endswith("\r") else "\n"
            print(f"{CLEARED}{text}" if on_terminal else text, end=end, flush=True)
    if printed and on_terminal:
        print(CLEARED, end="")
    process.wait()
    content = log.read_text(encoding="utf-8")
    # It failed at once, had nothing to do, or was to list something.
    if not printed and (process.returncode or JOBS not in content):
        print(printable(content), end="")
    if process.returncode:
        print(f"The run did not finish; its whole output is in {log}.")
        if LOCKED in content:
            command = shlex.join(["python", "workflow_scripts", "run", "--unlock", *sys.argv[1:]])
            print(f"If no other Snakemake works in this folder, type: {command}; then start again.")
    return process.returncode


if __name__ == "__main__":
    if {"-h", "--help"}.intersection(sys.argv):
        print(f"{__doc__}\n`snakemake --help` lists its arguments.")
        sys.exit()
    verify = "--verify" in sys.argv
    try:
        require_executor(sys.argv[1:])
        arguments, folder, configured = frozen(
            [text for text in sys.argv[1:] if text != "--verify"]
        )
        is_dry = bool({"-n", "--dry-run", "--dryrun"}.intersection(arguments))
        if copied := is_copied(arguments, folder, configured.resolved):
            print(
                f"The results in {folder} were made under another name or configuration, of which "
                "Snakemake has no record: all are verified first, as with --verify.",
                flush=True,
            )
            if not is_dry:
                (folder / COPIED).touch()
        again = doubted(arguments) if verify or copied else []
        if copied and not is_resolved(folder, configured.resolved):
            again.append(str(folder / "config.yaml"))  # which holds no hash
        if again:
            print(*(f"{path} is made again" for path in again), sep="\n", flush=True)
            arguments += ["--forcerun", *again]
        elif copied and not is_dry:
            (folder / COPIED).unlink()
        arguments = with_memory(arguments)
        if is_dry:
            sys.exit(subprocess.call([*SNAKEMAKE, *arguments]))
        sys.exit(run(arguments, folder / "logs/run.log"))
    except OSError as error:  # a full disk, a missing permission
        sys.exit(f"error: {error.filename or 'a file of the run'}: {error.strerror}.")
