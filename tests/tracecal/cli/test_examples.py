"""The files of examples/ run as their page says, and agree with one another."""

import json
from pathlib import Path

import polars as pl
import pytest

from tracecal.answers.read import read_answers
from tracecal.answers.settings import Reading
from tracecal.cli.main import main

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
TRACED = (
    "openai_batch.jsonl openai_responses.jsonl openai_completions.jsonl llama_cpp.jsonl "
    "ollama.jsonl sglang.jsonl inspect.json"
).split()
NUMBERS = ["surprisal", "entropy", "entropy_lower", "entropy_upper"]


@pytest.fixture(scope="module")
def calibrator(tmp_path_factory):
    path = tmp_path_factory.mktemp("examples") / "C.json"
    told = ["--task", "closed_book", "--vocabulary", "1500", "--output", str(path)]
    assert main(["calibrate", "--answers", str(EXAMPLES / "columns.jsonl"), *told]) == 0
    return path


def scored(calibrator, name, tmp_path, *more):
    output = tmp_path / "scored.jsonl"
    arguments = ["--answers", str(EXAMPLES / name), "--calibrator", str(calibrator)]
    assert main(["score", *arguments, "--output", str(output), *more]) == 0
    return pl.read_ndjson(output)


@pytest.mark.parametrize("name", TRACED)
def test_every_form_gives_the_same_probabilities(calibrator, name, tmp_path):
    found, first = (scored(calibrator, one, tmp_path) for one in (name, TRACED[0]))
    assert found.drop("keep").equals(first.drop("keep"))
    assert found.height == 4
    assert (found["lower"] < found["probability"]).all()
    assert (found["probability"] < found["upper"]).all()


def test_the_page_names_every_file():
    named = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    files = [path.name for path in EXAMPLES.iterdir() if path.suffix in (".json", ".jsonl")]
    assert sorted(files) == sorted([*TRACED, "columns.jsonl", "samples_closed_book.jsonl"])
    assert all(f"`{name}`" in named for name in files)


def test_the_forms_tell_what_they_can():
    frames = {name: read_answers(EXAMPLES / name).frame for name in TRACED}
    assert all(set(frame["stop_token"]) == {"included"} for frame in frames.values())
    assert frames["inspect.json"]["correct"].null_count() == 0
    with_ids = ("openai_batch.jsonl", "openai_completions.jsonl", "llama_cpp.jsonl", "sglang.jsonl")
    ids = [frames[name]["token_ids"].to_list() for name in with_ids]
    assert ids[1:] == ids[:-1]
    assert None not in ids[0]


def test_an_evaluation_without_probabilities_says_so_answer_by_answer(calibrator, tmp_path):
    found = scored(calibrator, "samples_closed_book.jsonl", tmp_path, "--id", "doc.id")
    assert set(found["reason"]) == {"no log-probabilities are given"}
    verdicts = read_answers(EXAMPLES / "samples_closed_book.jsonl", Reading(id="doc.id")).frame
    inspected = read_answers(EXAMPLES / "inspect.json").frame
    assert verdicts.select("example_id", "correct").equals(
        inspected.select("example_id", "correct")
    )


def test_a_csv_and_a_parquet_hold_the_same(calibrator, tmp_path):
    arguments = ["--answers", str(EXAMPLES / TRACED[0]), "--calibrator", str(calibrator)]
    for name in ("s.csv", "s.parquet"):
        assert main(["score", *arguments, "--output", str(tmp_path / name)]) == 0
    found = pl.read_parquet(tmp_path / "s.parquet")
    assert (
        found["probability"].to_list() == pl.read_csv(tmp_path / "s.csv")["probability"].to_list()
    )
    assert main(["score", *arguments, "--output", str(tmp_path / "s.txt")]) == 1


def test_an_error_is_one_sentence_and_status_1(tmp_path, caplog):
    path = tmp_path / "C.json"
    path.write_text(json.dumps({}), encoding="utf-8")
    arguments = ["--answers", str(EXAMPLES / TRACED[0]), "--calibrator", str(path)]
    assert main(["score", *arguments]) == 1
    assert "does not say what it was fitted on" in caplog.text
    assert "Traceback" not in caplog.text
