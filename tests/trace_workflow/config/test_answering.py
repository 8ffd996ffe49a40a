"""Models whose answers come from files: what may be written, and what is computed for them."""

import copy
from pathlib import Path

import pytest
import yaml

from trace_workflow.config.config import load_config
from trace_workflow.config.estimator_list import beyond_traces
from trace_workflow.config.run import load_tasks
from trace_workflow.config.selection import Selection
from tracecal.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
SMOKE = yaml.safe_load((ROOT / "config/smoke.yaml").read_text(encoding="utf-8"))
TRACES = {"likelihood", "entropy", "trajectory", "trace"}


def selection(source, *args, **options):
    given = config(source, *args, **options)
    return Selection(given, load_tasks(given, ROOT))


def config(source, alone=False, columns=None, **more):
    value = copy.deepcopy(SMOKE) | more
    value["study"]["columns"] = columns or {}
    value["models"].append({"slug": "elsewhere", "source": source})
    value["study"]["cross"]["models"].append("elsewhere")
    if alone:
        value["study"] = {
            "main": {"models": ["elsewhere"], "tasks": ["arithmetic"]},
            "columns": columns or {},
        }
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
        ({"answers": "x", "reading": {"also": {"judge": "judge"}}}, "in a run, name columns"),
        ({}, "give exactly one of"),
    ],
)
def test_what_may_not(source, sentence):
    with pytest.raises(InputError, match=sentence):
        config(source)


def test_only_what_a_trace_gives_is_computed_for_such_a_model():
    run_selection = selection({"answers": "logs/{task}.jsonl"})
    found = run_selection.computed("elsewhere")
    assert {"seq_logp", "trace", "trace_plus", "learned_dml"} <= {*found.ids}
    assert {one.family for one in found} >= TRACES
    assert not any(beyond_traces(one) for one in found)
    assert not any("mars" in one.id or "token_sar" in one.id for one in found)
    assert {"mars", "beam_ratio", "lars"} <= {*run_selection.computed("demo-small").ids}


def test_what_is_missing_is_named_with_its_reason():
    (told,) = selection({"answers": "logs/{task}.jsonl"}).warnings
    assert told.startswith("elsewhere's answers come from files, which do not give ")
    assert "beam_ratio, beam_tail_thinness, beam_entropy (need beams)" in told
    assert "internal_probe (need labelled training answers)" in told


def test_where_all_answers_come_from_files_the_others_are_left_out():
    run_selection = selection({"answers": "logs/{task}.jsonl"}, alone=True)
    assert {one.family for one in run_selection.chosen} >= TRACES | {"ces"}
    assert not any(beyond_traces(one) for one in run_selection.chosen)
    reason = "it needs beams, and all answers come from files"
    assert run_selection.left_out["beam_ratio"] == reason
    assert f"beam_ratio is left out: {reason}" in run_selection.warnings
    assert run_selection.left_out["mars_with_trace"]
    assert not any("which do not give" in sentence for sentence in run_selection.warnings)


COLUMNS = {"judge": "scores.judge", "hits": "hits"}


def test_columns_are_own_scores_and_enter_a_fit_where_answers_come_from_files():
    run_selection = selection({"answers": "logs/{task}.jsonl"}, columns=COLUMNS)
    own = run_selection.computed("elsewhere", "arithmetic")
    assert {"judge", "hits"} <= {e.id for e in own if e.role == "own"}
    (fit,) = own.with_ids(["log_ridge_also"])
    (ridge,) = own.with_ids(["log_ridge"])
    assert fit.inputs == [*ridge.inputs, "scores.judge", "scores.hits"] and fit.fit == "ridge"
    assert {"judge", "hits", "log_ridge_also"}.isdisjoint(run_selection.computed("demo-small").ids)
    assert "log_ridge_also" in run_selection.beyond_paper.ids
    told = (
        "demo-small's answers are decoded here, without the study's columns: no judge, hits, log_"
    )
    assert any(sentence.startswith(told) for sentence in run_selection.warnings)
    assert run_selection.config.reading("elsewhere").also == COLUMNS
    assert not selection({"answers": "logs/{task}.jsonl"}).chosen.with_ids(["log_ridge_also"])


def test_where_all_answers_come_from_files_all_have_the_columns():
    run_selection = selection({"answers": "logs/{task}.jsonl"}, alone=True, columns=COLUMNS)
    assert {"judge", "hits", "log_ridge_also"} <= {*run_selection.main.ids} - {
        *run_selection.left_out
    }
    assert not any("columns" in sentence for sentence in run_selection.warnings)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"columns": {"trace": "a"}}, "'trace' is the name of a built-in estimator or feature"),
        ({"columns": {"length": "a"}}, "'length' is the name of a built-in estimator or feature"),
        ({"columns": {"two words": "a"}}, "two words"),
        (
            {"columns": COLUMNS, "estimators": ["log_ridge_also", "judge"]},
            "'log_ridge_also' is built on 'hits': add it, or leave both out",
        ),
        ({"estimators": ["log_ridge_also"]}, "log_ridge_also"),
        (
            {
                "columns": {"brevity": "a"},
                "custom_estimators": str(ROOT / "examples/custom_estimators.py"),
            },
            "'brevity' is a column and a custom estimator; rename one",
        ),
    ],
)
def test_columns_that_may_not_be(options, sentence):
    with pytest.raises(InputError, match=sentence):
        assert selection({"answers": "logs/{task}.jsonl"}, **options).chosen


def test_columns_need_answers_from_files():
    with pytest.raises(InputError, match=r"no model of the studies has any \(source: \{answers"):
        load_config(SMOKE | {"study": SMOKE["study"] | {"columns": COLUMNS}}, "c")
