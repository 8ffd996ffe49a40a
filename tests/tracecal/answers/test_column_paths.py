"""Rows of an unknown form, for which the options are named that read them."""

import math

import pytest

from tracecal.answers.column_paths import column_paths
from tracecal.answers.read import read_rows
from tracecal.answers.reading import Reading
from tracecal.errors import InputError

TOKENS = {"content": [{"token": "5", "logprob": math.log(0.5), "top_logprobs": []}]}
INNER = {"role": "assistant", "content": "5", "finish_reason": "stop", "logprobs": TOKENS}
ROW = {"trace_id": "t-1", "model": "m", "prompt": "2 + 3?", "completion": INNER}


def test_the_options_that_are_named_read_the_row():
    with pytest.raises(InputError, match="its format is unknown; where it seems") as raised:
        read_rows([ROW], Reading())
    words = str(raised.value).partition("--columns ")[2].split(". ")[0].split()
    columns = dict(word.split("=") for word in words)
    frame = read_rows([ROW], Reading(columns=columns, id="trace_id")).frame
    answer = frame.row(0, named=True)
    assert answer["surprisal"] == pytest.approx([math.log(2)])
    assert (answer["answer"], answer["finish_reason"], answer["model"]) == ("5", "stop", "m")


@pytest.mark.parametrize(
    ("row", "paths"),
    [
        (
            {"a": {"b": {"token_logprobs": [None, -1.0], "x": 1}, "text": "5"}},
            {"logprobs": "a.b.token_logprobs", "answer": "a.text"},
        ),
        (
            {"out": {"message": {"content": "5"}, "logprobs": TOKENS, "finishReason": "STOP"}},
            {
                "logprobs": "out.logprobs",
                "answer": "out.message.content",
                "finish_reason": "out.finishReason",
            },
        ),
        ({"out": {"probs": [0.5]}}, {"probabilities": "out.probs"}),
        ({"out": {"logprobs": {}, "text": "5"}}, {}),
        ({"out": [{"logprobs": [-1.0]}]}, {}),
    ],
)
def test_log_probabilities_are_found_with_what_stands_near_them(row, paths):
    assert column_paths(row) == paths


def test_a_row_without_log_probabilities_has_its_fields_listed():
    with pytest.raises(InputError, match=r"none of its fields \(trace_id, reply\) holds log-prob"):
        read_rows([{"trace_id": "t", "reply": {"content": "5"}}], Reading())


def test_an_object_without_end_is_searched_within_bounds():
    row = inner = {}
    for _ in range(5000):
        inner["a"] = inner = {}
    inner["logprobs"] = [-1.0]
    assert column_paths(row) == {}


def test_a_missing_id_has_a_field_proposed():
    columns = {"answer": "completion.content", "logprobs": "completion.logprobs"}
    with pytest.raises(InputError, match="or name its field, as in --id trace_id"):
        read_rows([ROW], Reading(columns=columns))


def test_a_model_that_stands_beside_an_answer_is_read():
    row = {"id": "a", "model": "m", "response": {"answer": "5", "logprobs": [-0.5]}}
    assert read_rows([row], Reading()).frame["model"].to_list() == ["m"]


@pytest.mark.parametrize("name", ["messages", "prompt", "question", "query", "instruction"])
def test_equal_answers_to_different_questions_are_told_apart(name):
    columns = {"answer": "completion.content", "logprobs": "completion.logprobs"}
    base = {"completion": INNER, "passage": "text"}
    rows = [base | {"id": f"{i}", name: question} for i, question in enumerate("aab")]
    rows.append(rows[0] | {"id": "3", "passage": "another"})
    frame = read_rows(rows, Reading(columns=columns)).frame
    first, same, other, elsewhere = frame["asked"].to_list()
    assert first == same is not None
    assert len({first, other, elsewhere}) == 3
