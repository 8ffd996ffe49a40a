"""Files as the real programs wrote them: vLLM 0.32's server and `LLM`, llama.cpp's of llama-cpp-python
0.3.36, Inspect AI 0.3.285 and lm-evaluation-harness 0.4.13, all of SmolLM2-135M-Instruct; and an
export of Label Studio 1.23.2, as its server wrote it.
"""

import json
from pathlib import Path
from typing import get_args

import polars as pl
import pytest

from tracecal.answers.answers import read_file
from tracecal.answers.formats.layouts import FORMATS
from tracecal.answers.labels import read_labels
from tracecal.answers.reading import FormatName, Reading

REAL = Path(__file__).with_name("real")


def read(name, **reading):
    return read_file(REAL / name, Reading(vocabulary=49152, **reading))


def test_the_formats_that_may_be_named_are_those_that_are_read_in_that_order():
    assert get_args(FormatName) == ("auto", *FORMATS)


def test_vllms_server_counts_what_ended_an_answer():
    frame = read("vllm.jsonl").frame.sort("example_id")
    assert frame["example_id"].to_list() == ["fr", "jp", "sum"]
    assert set(frame["stop_token"]) == {"included"}
    # The third ended with the stop string "\n", which its text leaves out.
    assert frame["answer"][2] == " 5"
    assert frame["tokens"][2].to_list() == [" ", "5", "\n"]
    assert frame["token_ids"][0].len() == frame["tokens"][0].len() == 8
    assert (frame["entropy_lower"].list.min() >= 0).all()


def test_vllms_outputs_offline_hold_the_same_as_dictionaries_and_as_flat_lists():
    """Two choices of vLLM 0.32's `LLM`, of a random model; the flat lists name tokens twice."""
    frame = read("vllm_offline.jsonl").frame
    assert frame["group_id"].to_list() == ["dictionaries"] * 2 + ["flat"] * 2
    numbers = frame.drop("example_id", "group_id")
    assert numbers[:2].equals(numbers[2:])
    outputs = json.loads((REAL / "vllm_offline.jsonl").read_text().splitlines()[0])["outputs"]
    totals = [-output["cumulative_logprob"] for output in outputs]
    assert numbers["surprisal"][:2].list.sum().to_list() == pytest.approx(totals, rel=1e-6)
    assert set(numbers["top_k"]) == {4}  # the three likeliest, and the token that was drawn


@pytest.mark.parametrize("name", ["vllm.jsonl", "llama_cpp.jsonl"])
def test_servers_do_not_divide_by_a_temperature_of_0(name):
    """The chosen token would have probability 1 and all others 0."""
    lines = (REAL / name).read_text().splitlines()
    rows = map(json.loads, lines)
    asked = {row.get("id") or row["example_id"]: row.get("request", {}) for row in rows}
    greedy = [example for example, one in asked.items() if one.get("temperature") == 0]
    rows = read(name).frame.filter(pl.col("example_id").is_in(greedy)).drop_nulls("surprisal")
    assert rows.height
    assert set(rows["processed"]) == {"no"}
    assert (rows["surprisal"].list.max() > 0.05).all()


def test_llama_cpps_server_lists_what_it_says():
    frame = read("llama_cpp.jsonl").frame
    rows = {row["example_id"]: row for row in frame.iter_rows(named=True)}
    stops = {"fr": "included", "chat": "included", "sum": "absent", "text": "absent"}
    assert {name: rows[name]["stop_token"] for name in stops} == stops
    assert rows["text"]["tokens"] == rows["sum"]["tokens"] == [" ", "5"]
    assert [rows[name]["processed"] for name in ("fr", "bent", "chat")] == ["no", "yes", "no"]
    # Of the three tokens that each star is made of the last alone is listed.
    assert rows["stars"]["surprisal"] is rows["stars"]["entropy"] is None
    assert rows["stars"]["lacks"] == "the log-probability of token 1 is not given"
    assert len(rows["stars"]["token_ids"]) == 6


def test_inspect_gives_traces_labels_and_what_was_asked():
    found = read("inspect.eval")
    assert found.wrong_rows == []
    assert found.frame["correct"].to_list() == [True, True]
    assert found.frame["stop_token"].to_list() == ["none", "included"]
    assert found.frame["processed"].to_list() == ["no", "no"]
    assert found.frame["entropy"].null_count() == 0


def test_lm_evaluation_harness_gives_prompts_texts_and_labels():
    found = read("samples_facts.jsonl", id="doc.id").frame
    assert found["no_answer"].to_list() == [None] * 3 + ["empty"] + [None] * 2
    assert found["prompt"].str.ends_with("\nAnswer:").all()
    assert found["correct"].to_list() == [False] * 6


def test_times_are_those_that_the_programs_state():
    began = {
        "vllm.jsonl": 1795333092,
        "inspect.eval": 1795333060.61279,
        "llama_cpp.jsonl": 1795333618,
    }
    for name, first in began.items():
        assert read(name).frame["created"].min() == pytest.approx(first)
    assert read("samples_facts.jsonl", wrong_rows="skip").frame["created"].count() == 0


def test_label_studios_export_counts_no_cancelled_annotation():
    labels = read_labels(REAL / "label_studio.json")
    assert labels.by_id == {"cities-404": True, "cities-406": False, "cities-440": None}
