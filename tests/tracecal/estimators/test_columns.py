"""A user's own columns of answers from files, from the file to their scores."""

import json

import polars as pl

from tracecal.answers.reading import Reading
from tracecal.answers.task_answers import answers_to
from tracecal.estimators.families import FAMILIES
from tracecal.estimators.scores import family_scores
from tracecal.io.digests import digest
from tracecal.io.files import write_parquet


def read(tmp_path, judge):
    """The scores of three answers with these verdicts, and of a question without an answer."""
    ids = ["a", "b", "c", "d"]
    task, path = tmp_path / "task.parquet", tmp_path / "answers.jsonl"
    write_parquet(pl.DataFrame({"example_id": ids, "role": ["evaluation"] * 4}), task)
    rows = [
        {"id": name, "answer": "x", "logprobs": [-0.5], "scores": {"judge": value}}
        for name, value in zip(ids, judge, strict=False)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    reading = Reading(also={"judge": "scores.judge"}, wrong_rows="skip")
    _, questions = answers_to(str(task), str(path), digest(path), reading)
    write_parquet(questions, tmp_path / "questions.parquet")
    columns = FAMILIES["columns"]
    return family_scores(
        columns.answers(str(tmp_path / "questions.parquet")), columns.SCORES, ["judge"]
    )


def test_verdicts_and_numbers_are_scores_and_null_where_there_are_none(tmp_path):
    assert read(tmp_path, [True, False, None]).rows() == [("a", 1.0), ("b", 0.0), ("c", None)]
    assert read(tmp_path, [0.25, "0.5", -3])["judge"].to_list() == [0.25, 0.5, -3.0]


def test_a_row_with_a_text_in_place_of_a_number_is_invalid(tmp_path, caplog):
    assert read(tmp_path, ["perhaps", 1, 1])["example_id"].to_list() == ["b", "c"]
    assert "scores.judge holds 'perhaps', neither a number nor a verdict" in caplog.text
