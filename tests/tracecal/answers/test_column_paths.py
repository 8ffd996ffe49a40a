"""Rows of an unknown form, for which the options are named that read them."""

import math

import pytest

from tracecal.answers.answers import read_rows
from tracecal.answers.column_paths import column_paths
from tracecal.answers.reading import Reading
from tracecal.errors import InputError

TOKENS = {"content": [{"token": "5", "logprob": math.log(0.5), "top_logprobs": []}]}
INNER = {"role": "assistant", "content": "5", "finish_reason": "stop", "logprobs": TOKENS}
ROW = {"trace_id": "t-1", "model": "m", "prompt": "2 + 3?", "completion": INNER}


def test_the_options_that_are_named_read_the_row():
    with pytest.raises(InputError, match="its format is unknown; where it seems") as raised:
        read_rows([ROW], Reading())
    words = raised.value.args[0].partition("--columns ")[2].split(". ")[0].split()
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
        ({"out": [{"logprobs": [-1.0]}]}, {"logprobs": "out.0.logprobs"}),
        ({"out": []}, {}),
    ],
)
def test_log_probabilities_are_found_with_what_stands_near_them(row, paths):
    assert column_paths(row) == paths


CHAT = {"model": "m", "choices": [{"message": {"role": "assistant", "content": "5"}}]}
CHAT["choices"][0] |= {"logprobs": TOKENS, "finish_reason": "stop"}
REQUEST = {"messages": [{"role": "user", "content": "2 + 3?"}], "temperature": 0}


@pytest.mark.parametrize(
    ("row", "paths"),
    [
        (
            {"meta": {"key": "t"}, "record": {"req": REQUEST, "resp": CHAT}},
            {"response": "record.resp", "request": "record.req"},
        ),
        (
            {"meta": {"key": "t"}, "request": REQUEST, "calls": [{"reply": CHAT}]},
            {"response": "calls.0.reply"},
        ),
    ],
)
def test_a_whole_response_is_found_and_read_with_its_request(row, paths):
    with pytest.raises(InputError, match="its format is unknown; where it seems") as raised:
        read_rows([row], Reading())
    words = raised.value.args[0].partition("--columns ")[2].split(". ")[0].split()
    assert dict(word.split("=") for word in words) == paths
    answers = read_rows([row], Reading(columns=paths, id="meta.key")).frame
    plain = read_rows([{"id": "t", "request": REQUEST, "response": CHAT}], Reading()).frame
    assert answers.equals(plain) and answers["example_id"].to_list() == ["t"]


def test_each_choice_of_a_response_that_is_named_is_an_answer():
    second = CHAT["choices"][0] | {"index": 1, "message": {"content": "7"}}
    row = {"key": "t", "out": CHAT | {"choices": [CHAT["choices"][0], second]}, "correct": [1, 0]}
    frame = read_rows([row], Reading(columns={"response": "out"}, id="key")).frame
    assert frame.select("example_id", "answer", "correct").rows() == [
        ("t", "5", True),
        ("t#choice-2", "7", False),
    ]


def test_a_text_column_named_response_is_a_text():
    row = {"id": "t", "out": {"text": "5", "logprobs": [-1.0]}}
    columns = {"response": "out.text", "logprobs": "out.logprobs"}
    assert read_rows([row], Reading(columns=columns)).frame["answer"].to_list() == ["5"]


def test_a_path_without_a_value_in_any_row_is_refused():
    columns = {"answer": "completion.content", "logprobs": "completion.logprob"}
    expected = r"no row has a value at .* \(Reading\(columns={'logprobs': 'completion.logprob'}"
    with pytest.raises(InputError, match=expected):
        read_rows([ROW], Reading(columns=columns, id="trace_id"))
    some = [ROW, ROW | {"trace_id": "t-2", "completion": INNER | {"logprob": [-0.5]}}]
    frame = read_rows(some, Reading(columns=columns, id="trace_id")).frame
    assert frame["surprisal"].to_list() == [None, [0.5]]


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
    with pytest.raises(InputError, match=r"or name its field, as in Reading\(id='trace_id'\)"):
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
