"""Answers from files as a task's traces."""

import json

import polars as pl
import pytest

from tracecal.calibrate.fitted_on import fitted_on
from tracecal.decode.foreign import of_task, write_foreign
from tracecal.decode.traces import arrow_metadata, read_traces
from tracecal.errors import InputError
from tracecal.logs.options import Reading
from tracecal.storage.files import write_parquet

TRACE = {"surprisal": [0.5, 0.25], "entropy": [0.75, 0.5]}
KIND = {"stop_token": "included", "processed": "no", "model": "m"}


@pytest.fixture
def task(tmp_path):
    rows = {"example_id": ["a", "b", "c"], "role": ["evaluation", "evaluation", "training"]}
    write_parquet(pl.DataFrame(rows), tmp_path / "task.parquet")
    return tmp_path / "task.parquet"


@pytest.fixture
def file(tmp_path):
    """Writes rows of answers; gives their file."""

    def make(*rows):
        path = tmp_path / "answers.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return make


def answer(name, **more):
    return {"example_id": name, "answer": "51"} | TRACE | KIND | more


def test_traces_from_a_file_are_read_like_any_others(task, file, tmp_path):
    answers = of_task(file(answer("b", correct=True), answer("a")), task, Reading())
    write_foreign(answers, {"model": "slug"}, Reading(vocabulary=9), tmp_path / "t.arrow")
    columns = ["example_id", "surprisal", "entropy"]
    assert read_traces(tmp_path / "t.arrow", columns).to_dicts() == [
        {"example_id": name, **TRACE} for name in "ab"
    ]
    table = pl.read_ipc(tmp_path / "t.arrow")
    assert table["tokens"].to_list() == [["·", "·"]] * 2
    assert table["correct"].to_list() == [None, True]
    told = fitted_on(
        arrow_metadata(tmp_path / "t.arrow"), pl.Series([True, False]), "slug", ["Label"], "t"
    )
    expected = {
        "model": "slug",
        "known_as": ["Label", "m"],
        "stop_token": "included",
        "processed": "no",
        "entropy": "exact",
        "vocabulary": 9,
        "n": 2,
        "base_rate": 0.5,
    }
    assert {key: told[key] for key in expected} == expected


def test_bounds_of_entropies_stand_beside_their_middle(task, file, tmp_path):
    top = {"entropy": None, "top_logprobs": [[-0.5, -1.5], [-0.25, -3.0]]}
    reading = Reading(vocabulary=100)
    answers = of_task(file(answer("a", **top), answer("b", **top)), task, reading)
    write_foreign(answers, {}, reading, tmp_path / "t.arrow")
    row = pl.read_ipc(tmp_path / "t.arrow").row(0, named=True)
    ends = zip(row["entropy_lower"], row["entropy"], row["entropy_upper"], strict=True)
    assert all(low < middle < high for low, middle, high in ends)
    assert arrow_metadata(tmp_path / "t.arrow")["entropy"] == "top-k"


def test_questions_that_were_dropped_are_counted(task, file):
    with pytest.raises(InputError, match="no answer to 1 of 2 examples of the task, such as 'b'"):
        of_task(file(answer("a")), task, Reading())


def test_answers_to_no_example_are_wrong_rows(task, file):
    with pytest.raises(InputError, match="line 3: the id 'x' is of no example of the task"):
        of_task(file(answer("a"), answer("b"), answer("x")), task, Reading())


def test_answers_without_a_whole_trace_are_refused(task, file, tmp_path):
    answers = of_task(file(answer("a"), answer("b", entropy=None)), task, Reading())
    with pytest.raises(InputError, match=r"1 answer.*'b', have no whole trace .no top log-prob"):
        write_foreign(answers, {}, Reading(), tmp_path / "t.arrow")


def test_answers_of_several_kinds_are_refused(task, file, tmp_path):
    answers = of_task(file(answer("a"), answer("b", stop_token="absent")), task, Reading())
    with pytest.raises(InputError, match=r"several kinds .stop_token: absent, included."):
        write_foreign(answers, {}, Reading(), tmp_path / "t.arrow")
