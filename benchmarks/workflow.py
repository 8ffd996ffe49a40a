"""What starting the workflow costs: parsing, and a dry run of all jobs, as their number grows."""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from benchmarks.timing import Row, alone, cpu_seconds_of

ROOT = Path(__file__).resolve().parents[1]
PAPER = ROOT / "config" / "paper.yaml"
DRY_RUN = (str(ROOT / ".venv/bin/snakemake"), "--cores", "1", "--dry-run", "--configfile")
SIZES = ((5, 4), (15, 8), (50, 20))  # models and tasks


def enlarged(models: int, tasks: int) -> dict:
    """The paper's configuration with so many copies of one of its models and of one task."""
    config = yaml.safe_load(PAPER.read_text(encoding="utf-8"))
    names = [f"model-{place}" for place in range(models)]
    slugs = [f"task-{place}" for place in range(tasks)]
    first = config["models"][0]
    return config | {
        "models": [first | {"slug": name, "label": name} for name in names],
        "tasks": [{"slug": slug, "file": "config/tasks/svamp.yaml"} for slug in slugs],
        "study": {
            "main": {"models": names[:1], "tasks": slugs},
            "cross": {"models": names[1:], "tasks": slugs, "broader": False},
            "broader": {"models": names},
        },
    }


def jobs(config: Path) -> int:
    """How many jobs a run has."""
    command = [*DRY_RUN, str(config), "--forceall", "--quiet", "rules"]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return int(re.findall(r"^total\s+(\d+)", run.stdout + run.stderr, re.MULTILINE)[-1])


def dry_run(config: Path) -> float:
    """CPU seconds of a dry run."""
    return cpu_seconds_of([*DRY_RUN, str(config), "--forceall", "--quiet", "all"], cwd=ROOT)


def rows() -> Iterator[Row]:
    """The paper's run, and those of more models and tasks."""
    yield alone(
        "dry run of config/paper.yaml", lambda: dry_run(PAPER), items=jobs(PAPER), unit="jobs"
    )
    with tempfile.TemporaryDirectory() as folder:
        for models, tasks in SIZES:
            path = Path(folder) / f"{models}x{tasks}.yaml"
            path.write_text(yaml.safe_dump(enlarged(models, tasks)), encoding="utf-8")
            yield alone(
                f"dry run of {models} models x {tasks} tasks",
                lambda path=path: dry_run(path),
                items=jobs(path),
                unit="jobs",
                repeats=1 if models * tasks > 100 else 3,
            )
