"""Models whose answers come from files: what may be written, and what is computed for them."""

import copy
from pathlib import Path

import pytest
import yaml

from trace_workflow.config.run import load_config, load_tasks
from trace_workflow.config.selection import Selection, beyond_traces
from tracecal.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
SMOKE = yaml.safe_load((ROOT / "config/smoke.yaml").read_text(encoding="utf-8"))
TRACES = {"likelihood", "entropy", "trajectory", "trace"}


def selection(source, alone=False):
    given = config(source, alone)
    return Selection(given, load_tasks(given, ROOT))


def config(source, alone=False):
    value = copy.deepcopy(SMOKE)
    value["models"].append({"slug": "elsewhere", "source": source})
    value["study"]["cross"]["models"].append("elsewhere")
    if alone:
        value["study"] = {"main": {"model": "elsewhere", "tasks": ["arithmetic"]}}
    return load_config(value, "c")


@pytest.mark.parametrize(
    "source",
    [
        {"answers": "logs/{task}.jsonl"},
        {"answers": "logs/{task}.jsonl", "format": "sglang", "reading": {"vocabulary": 9}},
        {"answers": "logs/{task}.jsonl", "path": "weights", "end_token": True},
    ],
)
def test_what_may_be_written(source):
    found = config(source).models[-1].source
    assert found.weights == ("path" in source)
    assert found.read_as.format == source.get("format", "auto")


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ({"answers": "logs/{model}.jsonl"}, r"unknown field \{model\}; allowed: \{task\}"),
        ({"path": "weights", "format": "sglang"}, "say how 'answers' are read"),
        ({"answers": "x", "path": "a", "hub": "a/b", "revision": "c"}, "give exactly one of"),
        ({"answers": "x", "format": "parquet"}, "format"),
        ({"answers": "x", "reading": {"vocabluary": 3}}, "did you mean 'vocabulary'"),
        ({}, "give exactly one of"),
    ],
)
def test_what_may_not(source, sentence):
    with pytest.raises(InputError, match=sentence):
        config(source)


def test_only_what_a_trace_gives_is_computed_for_such_a_model():
    made = selection({"answers": "logs/{task}.jsonl"})
    found = made.computed("elsewhere")
    assert {"seq_logp", "trace", "trace_plus", "learned_dml"} <= {*found.ids}
    assert {one.family for one in found} >= TRACES
    assert not any(beyond_traces(one) for one in found)
    assert not any("mars" in one.id or "token_sar" in one.id for one in found)
    assert {"mars", "beam_ratio", "lars"} <= {*made.computed("demo-small").ids}


def test_what_is_missing_is_named_with_its_reason():
    (told,) = selection({"answers": "logs/{task}.jsonl"}).warnings
    assert told.startswith("elsewhere's answers come from files, which do not give ")
    assert "beam_ratio, beam_tail_thinness, beam_entropy (need beams)" in told
    assert "internal_probe (need labelled training answers)" in told


def test_where_all_answers_come_from_files_the_others_are_left_out():
    made = selection({"answers": "logs/{task}.jsonl"}, alone=True)
    assert {one.family for one in made.chosen} >= TRACES | {"ces"}
    assert not any(beyond_traces(one) for one in made.chosen)
    reason = "it needs beams, and all answers come from files"
    assert made.left_out["beam_ratio"] == reason
    assert f"beam_ratio is left out: {reason}" in made.warnings
    assert made.left_out["mars_with_trace"]
    assert not any("which do not give" in sentence for sentence in made.warnings)
