"""A model, a scorer and a benchmark of a hub, staged while it is there, run to the end when it is gone."""

import os

import polars as pl
import pytest
import yaml
from transformers import AutoTokenizer

from support.checkout import copied_repository
from support.client import environment
from support.hub_content import parquet, tiny_model
from support.hub_server import Hub, serving
from trace_workflow.models.lars import small_encoder
from tracecal.io.traces import arrow_metadata

pytestmark = pytest.mark.runs
TOKEN = "hf_secretsecretsecretsecret"
SVAMP = "5e0bf1e5e7c0e9c4bc39180d224f41f3f801b7ef"  # as config/tasks/svamp.yaml pins it
UPSTREAM = {"stage_model", "stage_rows", "prepare_task", "generate"}


def word_problems(count: int, offset: int) -> bytes:
    return parquet(
        [
            {
                "ID": f"p{n}",
                "question_concat": f"Ann has {n} nuts and eats 2. How many?",
                "Answer": f"{n - 2}.0",
            }
            for n in range(offset, offset + count)
        ]
    )


def published_scorer(tokenizer_folder, folder) -> dict[str, bytes]:
    """A trained LARS as its authors' hub holds one: a RoBERTa with its bins, and a tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    model = small_encoder(len(tokenizer), 1, 16, [0.2, 0.5, 0.8])
    del model.config.own_tokens
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def config(root, commit: str, scorer: str):
    value = {
        "run": "hub",
        "models": [
            {"slug": "tiny", "source": {"hub": "tiny/gated", "revision": commit}, "batch_size": 32}
        ],
        "tasks": [{"slug": "svamp", "limit": 20, "training_limit": 3}],
        "study": {"main": {"models": ["tiny"], "tasks": ["svamp"]}},
        "estimators": ["seq_logp", "trace", "lars"],
        "lars": {"encoder": {"source": {"hub": "tiny/lars", "revision": scorer}, "trained": True}},
        "audit": {"answers": 4},
        "splits": {"count": 2},
    }
    path = root / "hub.yaml"
    path.write_text(yaml.safe_dump(value), encoding="utf-8")
    return path


def test_staged_while_the_hub_is_there_and_run_without_it(tmp_path, monkeypatch):
    model_files = tiny_model(tmp_path / "model")
    checkout = copied_repository(tmp_path / "checkout")
    hub = Hub()
    commit = hub.add("model", "tiny/gated", model_files, gated=True, tokens=frozenset({TOKEN}))
    lars = published_scorer(tmp_path / "model", tmp_path / "lars")
    scorer = hub.add("model", "tiny/lars", lars)
    # What `main` is now is another one: only the pinned commit can be staged.
    hub.repositories["model", "tiny/lars"].commits["0" * 40] = {"README.md": b"gone"}
    hub.repositories["model", "tiny/lars"].refs["main"] = "0" * 40
    hub.add("dataset", "ChilleD/SVAMP", {})
    hub.repositories["dataset", "ChilleD/SVAMP"].commits[SVAMP] = {
        "data/train-00000-of-00001.parquet": word_problems(9, 100),
        "data/test-00000-of-00001.parquet": word_problems(25, 10),
    }
    path = config(checkout.root, commit, scorer)
    said = ""
    with serving(hub):
        for name in [name for name in os.environ if name.startswith("HF_")]:
            monkeypatch.delenv(name)
        for name, value in environment(hub.url, tmp_path / "hf").items():
            monkeypatch.setenv(name, value)
        refused = checkout.snakemake("stage", config=path, check=False)
        assert refused.returncode
        assert "https://huggingface.co/tiny/gated" in refused.stdout
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        staged = checkout.snakemake("stage", config=path)
        said += refused.stdout + staged.stdout
    results = checkout.root / "results/hub"
    assert {one.name for one in results.iterdir()} == {
        "benchmarks",
        "encoders",
        "logs",
        "models",
        "work",
    }
    assert set(checkout.scheduled(path)) & UPSTREAM == {"prepare_task", "generate"}
    said += checkout.snakemake("results/hub/metrics.parquet", config=path).stdout
    assert not set(checkout.scheduled(path)) & {*UPSTREAM, "collect_metrics"}
    metadata = arrow_metadata(results / "traces/tiny/svamp.arrow")
    assert metadata["revision"] == commit
    assert (results / "work/revisions/tiny.txt").read_text() == f"{commit}\n"
    assert (results / "work/revisions/encoders/lars.txt").read_text() == f"{scorer}\n"
    weights = results / "encoders/lars/model.safetensors"
    assert weights.read_bytes() == lars["model.safetensors"]
    scores = pl.read_parquet(results / "estimates/lars/tiny/svamp.parquet")
    assert scores["lars"].is_between(0, 1, closed="none").all()
    assert (results / "work/rows/svamp/test.txt").read_text() == f"{SVAMP}\n"
    with checkout.edited(
        "workflow_scripts/trace_workflow/models/decoding.py",
        "import torch\n",
        "import torch\nX = 1\n",
    ):
        scheduled = checkout.scheduled(path)
    assert scheduled["generate"] == 1
    assert not {"stage_model", "stage_rows", "prepare_task"} & set(scheduled)
    assert TOKEN not in said
    for file in tmp_path.rglob("*"):
        if file.is_file() and checkout.root / "tests" not in file.parents:
            assert TOKEN.encode() not in file.read_bytes(), file
