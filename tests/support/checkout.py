"""A copy of the repository, and ways to run it and to ask about it."""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import yaml
from filelock import FileLock

REPOSITORY = Path(__file__).resolve().parents[2]
SMOKE = "config/smoke.yaml"
MADE_FROM = (
    "Snakefile",
    "config",
    "demo",
    "envs",
    "profiles",
    "report",
    "rules",
    "workflow_scripts",
)
# Python keeps what it compiled, whatever the machine's setting is.
KEEPING = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
# Rules of several kinds of jobs: the wildcard that is a job's kind, and the job's name here.
KINDS = {
    "estimate_family": ("family", "estimate_{}"),
    "analyse": ("analysis", "{}"),
    "summarise": ("analysis", "{}"),
    "draw_figure": ("figure", "draw_{}"),
}


def command(*arguments: str, config: str | Path = SMOKE) -> list[str]:
    """How Snakemake is called in a checkout."""
    start = [sys.executable, "-m", "snakemake", "--cores", "2"]
    return [*start, *arguments, "--configfile", str(config)]


class Checkout:
    """A working copy: runs Snakemake in it, reads dry runs, edits files for a while."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def snakemake(self, *arguments: str, config: str | Path = SMOKE, check=True):
        """Run Snakemake; return the finished process with its output as text."""
        process = self.call(*command(*arguments, config=config))
        if check and process.returncode:
            pytest.fail(f"snakemake ended with {process.returncode}:\n{process.stdout[-6000:]}")
        return process

    def run(self, *arguments: str, config: str | Path = SMOKE, check=True):
        """As `snakemake`, by the checkout's own command."""
        start = [sys.executable, "workflow_scripts", "run", "--cores", "2", *arguments]
        process = self.call(*start, "--configfile", str(config))
        if check and process.returncode:
            pytest.fail(f"the run ended with {process.returncode}:\n{process.stdout[-6000:]}")
        return process

    def begin(self, *arguments: str, config: str | Path = SMOKE) -> subprocess.Popen:
        """Start Snakemake and do not wait for it; `killed` ends it."""
        return subprocess.Popen(
            command(*arguments, config=config),
            cwd=self.root,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=KEEPING,
        )

    def doubted(self, *targets: str, config: str | Path = SMOKE) -> set[str]:
        """The results that a run with --verify makes again, below the run's folder."""
        said = self.run("--verify", "--dry-run", *targets, config=config).stdout
        return set(re.findall(r"^results/[^/]+/(\S+) is made again$", said, re.M))

    def call(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run any command in the checkout; what it prints is text, errors among it."""
        return subprocess.run(
            command,
            cwd=self.root,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "COLUMNS": "200"},
        )

    def scheduled(self, config: str | Path = SMOKE) -> dict[str, int]:
        """How many jobs of each rule a dry run schedules, the target `all` left out.

        Those of a rule in KINDS are counted by their kind.
        """
        output = self.snakemake("--dry-run", config=config).stdout
        if "Nothing to be done" in output:
            return {}
        table = output.split("Job stats:")[1].split("\n\n")[0]
        jobs = {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", table, re.M)}
        for rule, (wildcard, name) in KINDS.items():
            planned = rf"^rule {rule}:\n(?:    .*\n)*?    wildcards: (?:.*, )?{wildcard}=([^,\n]+)"
            kinds = re.findall(planned, output, re.M)
            assert len(kinds) == jobs.pop(rule, 0)
            jobs |= Counter(map(name.format, kinds))
        return {rule: count for rule, count in jobs.items() if rule not in ("all", "total")}

    @contextmanager
    def edited(self, file: str, old: str, new: str) -> Iterator[None]:
        """Replace text in a file, and put it back afterwards."""
        path = self.root / file
        before = path.read_text(encoding="utf-8")
        assert old in before, f"{file} does not hold {old!r}"
        path.write_text(before.replace(old, new, 1), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(before, encoding="utf-8")

    def variant(self, name: str, **changes: object) -> Path:
        """The smoke configuration with top-level keys replaced, as a file."""
        value = yaml.safe_load((self.root / "config/smoke.yaml").read_text(encoding="utf-8"))
        path = self.root / f"{name}.yaml"
        path.write_text(yaml.safe_dump(value | changes, sort_keys=False), encoding="utf-8")
        return path

    def smoke(self) -> dict:
        return yaml.safe_load((self.root / "config/smoke.yaml").read_text(encoding="utf-8"))


def killed(process: subprocess.Popen) -> None:
    """End a run and all its jobs at once, as a power cut does."""
    with suppress(ProcessLookupError):  # it has ended by itself, with all its jobs
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for(condition: Callable[[], object], seconds: float = 300) -> None:
    """Wait until `condition()` holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


def repository_files() -> list[str]:
    """What git tracks, and what it would, as a fresh clone has it; sorted."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    return sorted(name for name in listed.split("\0") if name and (REPOSITORY / name).is_file())


def copied_repository(target: Path, but: Collection[str] = ()) -> Checkout:
    """Copy the repository's files, but those in some top folders; one that vanishes is none."""
    for name in repository_files():
        if name.split("/")[0] in but:
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            shutil.copyfile(REPOSITORY / name, target / name)
    return Checkout(target)


def copied_smoke_run(pytestconfig: pytest.Config, target: Path) -> Checkout:
    """A copy of a checkout in which `config/smoke.yaml` has run to its end.

    The original lies in pytest's cache and serves every process and every call of the tests, until
    something that a run is made from changes. It is made and copied under one lock: nobody deletes
    what another is copying, whatever changes beside them.
    """
    kept = pytestconfig.cache.mkdir("smoke")
    with FileLock(kept / "lock"):
        begun = kept / "begun"
        shutil.rmtree(begun, ignore_errors=True)
        copied_repository(begun)
        # Of what has been copied, as a file may change in between.
        run = kept / content(begun)
        if run.exists():
            shutil.rmtree(begun)
        else:
            for old in kept.iterdir():
                if old.is_dir() and old != begun:
                    shutil.rmtree(old)
            Checkout(begun).snakemake()
            begun.rename(run)
        shutil.copytree(run, target, symlinks=True)
    return copied_repository(target, but=MADE_FROM)


def content(checkout: Path) -> str:
    """A hash of what a run in a checkout is made from."""
    digest = hashlib.sha256()
    files = [
        path for name in MADE_FROM for path in (checkout / name, *(checkout / name).rglob("*"))
    ]
    for path in sorted(path for path in files if path.is_file()):
        digest.update(f"{path.relative_to(checkout)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
