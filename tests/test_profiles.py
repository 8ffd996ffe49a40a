"""What jobs ask of a machine: from the configuration, through the rules, to the profiles."""

import json
import math
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from trace_workflow.config.config import load_config
from trace_workflow.config.job_resources import JobResources, job_requests, loaded_gb
from trace_workflow.config.model_source import ModelSource
from trace_workflow.config.models import Model

ROOT = Path(__file__).resolve().parents[1]
RULES = {
    name: body
    for file in sorted((ROOT / "rules").glob("*.smk"))
    for name, body in re.findall(
        r"^rule (\w+):\n((?:(?!^\S).*\n)*)", file.read_text(encoding="utf-8"), re.M
    )
}
SCRIPTS = {
    name: (ROOT / path).read_text(encoding="utf-8")
    for name, body in RULES.items()
    for path in re.findall(r'script:\n        "\.\./(.+)"', body)
    if "{" not in path
}
ON_GPUS = {name for name, body in RULES.items() if "**requests(" in body}
# Another's but for their paths. Snakemake lets them run elsewhere where they do not say otherwise.
DERIVED = {
    name: of
    for file in (ROOT / "rules").glob("*.smk")
    for of, name in re.findall(r"^use rule (\w+) as (\w+) with", file.read_text(), re.M)
}
LOCAL = {
    name
    for file in sorted((ROOT / "rules").glob("*.smk"))
    for name, body in re.findall(
        r"^(?:use rule \w+ as|rule) (\w+).*:\n((?:(?!^\S).*\n)*)",
        file.read_text(encoding="utf-8"),
        re.M,
    )
    if "    localrule: True\n" in body
}
SLURM = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text(encoding="utf-8"))


def test_every_rule_that_runs_a_model_asks_for_what_it_needs():
    runs = re.compile(r"load_model\(|load_engine\(|load_encoder\(|resources\.batch_size")
    running = {name for name, script in SCRIPTS.items() if runs.search(script)}
    assert len(running) > 8
    assert running <= ON_GPUS
    assert not ON_GPUS & LOCAL


def test_the_slurm_profile_sends_exactly_those_to_the_gpu_partition():
    assert SLURM["set-resources"].keys() == ON_GPUS
    assert not ON_GPUS & {*DERIVED.values()}
    assert len({str(one) for one in SLURM["set-resources"].values()}) == 1


def test_what_is_staged_is_fetched_where_snakemake_runs():
    assert {"stage_model", "stage_rows", "stage_encoder"} <= LOCAL
    assert RULES.keys() | DERIVED.keys() | {"stage"} >= LOCAL


def test_profiles_agree_on_what_makes_a_job_run_again():
    # Either is read in place of the other.
    default = yaml.safe_load((ROOT / "profiles/default/config.yaml").read_text(encoding="utf-8"))
    own = {"resources", "max-checksum-file-size"}
    assert own < default.keys()
    assert {name: SLURM.get(name) for name in default.keys() - own} == {
        name: value for name, value in default.items() if name not in own
    }
    assert SLURM["max-checksum-file-size"] < default["max-checksum-file-size"]


def test_the_slurm_profile_is_read_as_it_stands(tmp_path, monkeypatch):
    """With `--profile`, that of profiles/default would override what both name."""
    from snakemake.cli import parse_args

    # The plugin is not of this environment.
    known = {key: value for key, value in SLURM.items() if "slurm" not in f"{key} {value}"}
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    (tmp_path / "profiles/slurm/config.yaml").write_text(yaml.safe_dump(known), encoding="utf-8")
    (tmp_path / "Snakefile").touch()
    monkeypatch.chdir(tmp_path)

    def read(option):
        _, given = parse_args([option, "profiles/slurm"])
        return {key: getattr(given, key.replace("-", "_")) for key in numbers}

    numbers = {key: value for key, value in known.items() if type(value) is int}
    assert numbers.keys() >= {"jobs", "scheduler-subsample", "max-checksum-file-size", "retries"}
    assert read("--workflow-profile") == numbers
    assert read("--profile") != numbers


PACKAGED = ModelSource(package="tiny", files={"model.gguf": "0" * 64})
LINKED = ModelSource(path="/models/one")


@pytest.mark.parametrize(
    ("given", "source", "needs"),
    [
        ({}, PACKAGED, (0, 2, 1)),
        ({}, LINKED, (1, 32, 4)),
        ({}, None, (0, 2, 1)),
        ({"gpus": 0, "hours": 0.5}, LINKED, (0, 32, 0.5)),
        ({"gpus": 2, "memory_gb": 7.5}, PACKAGED, (2, 7.5, 1)),
    ],
)
def test_what_is_not_given_suits_the_kind_of_model(given, source, needs):
    found = JobResources(**given).needs(source)
    assert (found.gpus, found.memory_gb, found.hours) == needs


@pytest.mark.parametrize(
    ("stored", "dtype", "gigabytes"),
    [
        ("float32", "float32", 4),
        ("bfloat16", "float32", 8),
        ("float32", "float16", 2),
        (None, None, 4),
    ],
)
def test_a_job_asks_for_the_memory_of_its_models_weights(tmp_path, stored, dtype, gigabytes):
    assert loaded_gb(tmp_path, dtype) is None
    (tmp_path / "config.json").write_text(json.dumps({"dtype": stored} if stored else {}))
    for name in ("model-1.safetensors", "model-2.safetensors"):
        with (tmp_path / name).open("wb") as weights:
            weights.truncate(2 * 10**9)  # takes no space
    assert loaded_gb(tmp_path, dtype) == gigabytes
    asked = job_requests(
        {"m": Model(slug="m", source={"path": LINKED.path}, dtype=dtype or "float32")},
        None,
        lambda *_: [tmp_path],
    )
    mem_mb, wildcards = asked["mem_mb"], SimpleNamespace(model="m")
    if dtype:
        assert mem_mb(wildcards, 1) == 1000 * math.ceil(2 + 1.25 * gigabytes)
        assert mem_mb(wildcards, 2) == 2 * mem_mb(wildcards, 1)
    stating = Model(slug="m", source={"path": LINKED.path}, memory_gb=7)
    asked = job_requests({"m": stating}, None, lambda *_: [tmp_path])
    assert asked["mem_mb"](wildcards, 1) == 7000


def test_a_rule_runs_where_the_rule_that_it_is_made_of_runs():
    assert {name for name, of in DERIVED.items() if of in LOCAL} == LOCAL & DERIVED.keys() - {
        "summarise"  # takes a second, where other analyses take minutes
    }


def test_every_rule_that_asks_for_memory_is_tried_again_with_more():
    assert {
        name for name, body in RULES.items() if "    retries: MEMORY_RETRIES" in body
    } == ON_GPUS


def test_the_papers_models_ask_for_gpus_by_their_size():
    paper = yaml.safe_load((ROOT / "config/paper.yaml").read_text(encoding="utf-8"))
    gpus = {
        model.slug: model.needs(model.source).gpus for model in load_config(paper, "paper").models
    }
    assert gpus["llama-3.1-70b-instruct"] > gpus["qwen3-32b"] > gpus["llama-3.1-8b-instruct"] == 1
