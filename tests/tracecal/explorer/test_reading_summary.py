"""What `tracecal reading` says of a file: formats, an answer, what is missing and what is not read."""

import json

import pytest

import tracecal
from support.arrow_files import write_arrow
from tracecal.cli.main import main
from tracecal.errors import InputError
from tracecal.io.traces import TRACES

TOP = [{"token": "Oslo", "logprob": -0.5}, {"token": "Rome", "logprob": -1.2}]
CONTENT = [{"token": "Oslo", "logprob": -0.5, "topLogits": [1.0], "top_logprobs": TOP}]
CHAT = {
    "custom_id": "q-1",
    "model": "m",
    "choices": [{"message": {"content": "Oslo"}, "logprobs": {"content": CONTENT}}],
}
PLAIN = {"id": "q-2", "answer": "Rome", "probs": [0.25], "correct": "unsure", "scores": {"x": 1}}


def test_formats_are_counted_and_fields_that_nothing_reads_are_named():
    strange = {"id": "q-3", "something": 1}
    summary = tracecal.explain_reading([CHAT, PLAIN, PLAIN | {"id": "q-4"}, strange, [1]])
    assert summary.formats == {"openai_chat": 1, "columns": 2, "unknown": 1}
    assert summary.answers["example_id"].to_list() == ["q-1", "q-2", "q-4"]
    path = "choices[].logprobs.content[].topLogits"
    assert summary.unread[path] == 1 and summary.unread["scores"] == 2
    assert [error.partition(":")[0] for error in summary.wrong_rows] == ["row 4", "row 5"]
    # What looks like a number that is missed stands first.
    assert f"Fields that are not read: {path}, scores" in summary.text


def test_one_answer_is_shown_as_it_was_understood():
    shown = dict(tracecal.explain_reading([CHAT]).example)
    assert shown["id"] == "q-1 (row 1)" and shown["answer"] == '"Oslo"' and shown["model"] == "m"
    # exp(-0.5) and exp(-1.2)
    assert shown[""] == "'Oslo' 0.61; other tokens 'Rome' 0.30"
    assert dict(tracecal.explain_reading([PLAIN]).example)["verdict"] == "unsure (counts as wrong)"


def test_fields_that_are_read_are_not_listed_whatever_their_names():
    """Gemini's Python client writes names in small letters with underscores."""
    candidate = {"index": 0, "content": {"parts": [{"text": "Oslo"}]}, "finish_reason": "STOP"}
    candidate["logprobs_result"] = {
        "chosen_candidates": [{"token": "Oslo", "log_probability": -0.5, "token_id": 7}]
    }
    response = {"candidates": [candidate], "model_version": "gemini-x"}
    outputs = [{"index": 0, "text": "Oslo", "finish_reason": "stop"}]
    rows = [{"id": "q-5", "response": response}, {"id": "q-6", "outputs": outputs}]
    summary = tracecal.explain_reading(rows)
    assert summary.formats == {"gemini": 1, "outputs": 1}
    assert summary.unread == {}


def test_what_is_missing_is_counted_with_its_remedy():
    missing = " ".join(tracecal.explain_reading([CHAT, PLAIN]).missing)
    for part in ("--vocabulary", "the model's name for 1 of 2", "--requests", "verdict on 1 of 2"):
        assert part in missing
    nothing = PLAIN | {"probs": None}
    assert "log-probabilities of all answers" in tracecal.explain_reading([nothing]).text


def test_what_a_file_of_traces_says_of_all_its_answers_is_not_missing(tmp_path):
    row = {"example_id": "a", "answer": "Oslo", "surprisal": [0.5], "entropy": [0.25]}
    row |= {"prompt": "?", "prompt_token_ids": [1], "finish_reason": "eos", "token_ids": [2]}
    metadata = {"schema_version": "1", "model": "m", "reasoning": "apart"}
    write_arrow([row | {"tokens": ["Oslo"]}], TRACES, metadata, tmp_path / "traces.arrow")
    summary = tracecal.explain_reading(tmp_path / "traces.arrow")
    assert summary.answers.equals(tracecal.read_answers(tmp_path / "traces.arrow"))
    assert dict(summary.example)["model"] == "m"
    missing = " ".join(summary.missing)
    for option in ("--model", "--stop-token", "--processed"):
        assert option not in missing


def test_the_command_prints_at_most_80_columns_and_joins_labels(tmp_path, capsys):
    answers, labels = tmp_path / "a.jsonl", tmp_path / "l.csv"
    answers.write_text("".join(json.dumps(row) + "\n" for row in (CHAT, PLAIN)) + "{\n")
    labels.write_text("id,correct\nq-1,yes\n")
    assert main(["reading", str(answers), "--labels", str(labels)]) == 0
    out = capsys.readouterr().out
    assert "1 invalid row(s): line 3" in " ".join(out.split())
    assert "1 of 2 answers have a verdict" in " ".join(out.split())
    assert "verdict   right" in out
    assert all(len(line) <= 80 for line in out.splitlines() if str(tmp_path) not in line)


def test_a_file_without_rows_is_an_error():
    with pytest.raises(InputError, match="holds no row"):
        tracecal.explain_reading([])
