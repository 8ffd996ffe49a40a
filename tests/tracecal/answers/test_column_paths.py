"""Rows of an unknown form, for which the options are named that read them."""

import json
import math
import re

import pytest

from tracecal.answers.answers import answers_in, read_file
from tracecal.answers.column_paths import column_paths
from tracecal.answers.reading import Reading
from tracecal.errors import InputError

TOKENS = {"content": [{"token": "5", "logprob": math.log(0.5), "top_logprobs": []}]}
INNER = {"role": "assistant", "content": "5", "finish_reason": "stop", "logprobs": TOKENS}
ROW = {"trace_id": "t-1", "model": "m", "prompt": "2 + 3?", "completion": INNER}


def test_the_options_that_are_named_read_the_row():
    with pytest.raises(InputError, match="its format is unknown, but it seems") as raised:
        answers_in([ROW], Reading())
    words = raised.value.args[0].partition("--columns ")[2].split(". ")[0].split()
    columns = dict(word.split("=") for word in words)
    frame = answers_in([ROW], Reading(columns=columns, id="trace_id")).frame
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
    with pytest.raises(InputError, match="its format is unknown, but it seems") as raised:
        answers_in([row], Reading())
    words = raised.value.args[0].partition("--columns ")[2].split(". ")[0].split()
    assert dict(word.split("=") for word in words) == paths
    answers = answers_in([row], Reading(columns=paths, id="meta.key")).frame
    plain = answers_in([{"id": "t", "request": REQUEST, "response": CHAT}], Reading()).frame
    assert answers.equals(plain) and answers["example_id"].to_list() == ["t"]


def test_each_choice_of_a_response_that_is_named_is_an_answer():
    second = CHAT["choices"][0] | {"index": 1, "message": {"content": "7"}}
    row = {"key": "t", "out": CHAT | {"choices": [CHAT["choices"][0], second]}, "correct": [1, 0]}
    frame = answers_in([row], Reading(columns={"response": "out"}, id="key")).frame
    assert frame.select("example_id", "answer", "correct").rows() == [
        ("t", "5", True),
        ("t#choice-2", "7", False),
    ]


def test_a_text_column_named_response_is_a_text():
    row = {"id": "t", "out": {"text": "5", "logprobs": [-1.0]}}
    columns = {"response": "out.text", "logprobs": "out.logprobs"}
    assert answers_in([row], Reading(columns=columns)).frame["answer"].to_list() == ["5"]


def test_a_path_without_a_value_in_any_row_is_refused():
    columns = {"answer": "completion.content", "logprobs": "completion.logprob"}
    expected = r"no row has a value at .* \(Reading\(columns={'logprobs': 'completion.logprob'}"
    with pytest.raises(InputError, match=expected):
        answers_in([ROW], Reading(columns=columns, id="trace_id"))
    some = [ROW, ROW | {"trace_id": "t-2", "completion": INNER | {"logprob": [-0.5]}}]
    frame = answers_in(some, Reading(columns=columns, id="trace_id")).frame
    assert frame["surprisal"].to_list() == [None, [0.5]]


def test_a_row_without_log_probabilities_has_its_fields_listed():
    with pytest.raises(InputError, match=r"none of its fields \(trace_id, reply\) holds log-prob"):
        answers_in([{"trace_id": "t", "reply": {"content": "5"}}], Reading())


def test_an_object_without_end_is_searched_within_bounds():
    row = inner = {}
    for _ in range(5000):
        inner["a"] = inner = {}
    inner["logprobs"] = [-1.0]
    assert column_paths(row) == {}


def test_a_missing_id_has_a_field_proposed():
    columns = {"answer": "completion.content", "logprobs": "completion.logprobs"}
    with pytest.raises(InputError, match=r"or name its field, as in Reading\(id='trace_id'\)"):
        answers_in([ROW], Reading(columns=columns))


def test_a_model_that_stands_beside_an_answer_is_read():
    row = {"id": "a", "model": "m", "response": {"answer": "5", "logprobs": [-0.5]}}
    assert answers_in([row], Reading()).frame["model"].to_list() == ["m"]


@pytest.mark.parametrize("name", ["messages", "prompt", "question", "query", "instruction"])
def test_equal_answers_to_different_questions_are_told_apart(name):
    columns = {"answer": "completion.content", "logprobs": "completion.logprobs"}
    base = {"completion": INNER, "passage": "text"}
    rows = [base | {"id": f"{i}", name: question} for i, question in enumerate("aab")]
    rows.append(rows[0] | {"id": "3", "passage": "another"})
    frame = answers_in(rows, Reading(columns=columns)).frame
    first, same, other, elsewhere = frame["asked"].to_list()
    assert first == same is not None
    assert len({first, other, elsewhere}) == 3


def hinted(row):
    """The columns that the message names."""
    with pytest.raises(InputError, match="its format is unknown") as raised:
        answers_in([row], Reading())
    words = raised.value.args[0].partition("--columns ")[2].split(". ")[0].split()
    return dict(word.split("=") for word in words)


LISTED = [{"text": "5", "logprob": -0.5, "top_tokens": [{"text": "5", "logprob": -0.5}]}]


@pytest.mark.parametrize(
    "row",
    [
        {"k.id": "t", "a.llm.text": "5", "a.llm.logprobs": [-0.5]},
        {"k": {"id": "t"}, "a": {"b.logprobs": TOKENS, "b.content": "5"}},
        {"k.id": "t", "answer.text": "5", "answer.tokens": LISTED},
        {"k": {"id": "t"}, "out": json.dumps(CHAT)},
        {"k.id": "t", "call.response": json.dumps(CHAT), "call.request": json.dumps(REQUEST)},
        {"k.id": "t", "call": {"body": json.dumps(CHAT)}},
        {"k": {"id": "t"}, "results": [{"generated_text": "5", "generated_tokens": LISTED}]},
        {"k": {"id": "t"}, "r": {"completions": [{"text": "5", "logprob": -1, "tokens": LISTED}]}},
        {"k": {"id": "t"}, "r": {"text": "5", "pieces": [["5", -0.5]]}},
    ],
)
def test_the_hint_reads_rows_under_any_wrapper(row):
    frame = answers_in([row], Reading(columns=hinted(row), id="k.id")).frame
    assert frame["example_id"].to_list() == ["t"] and frame["answer"].to_list() == ["5"]
    assert frame["surprisal"].explode().is_between(0.4, 0.8).all()


@pytest.mark.parametrize("name", ["output", "outputs", "result"])
@pytest.mark.parametrize("pack", [dict, json.dumps])
def test_a_traced_call_is_read_as_its_response(name, pack):
    row = {"id": "t", "op_name": "chat", "inputs": REQUEST, name: pack(CHAT), "epoch": None}
    del row["epoch"]
    frame = answers_in([row], Reading()).frame
    plain = answers_in([{"id": "t", "request": REQUEST, "response": CHAT}], Reading()).frame
    assert frame.equals(plain)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "t", "out": {"avg_logprob": -0.5}}, "out.avg_logprob is -0.5, and log-prob"),
        ({"id": "t", "token_log_probs": {"5": 0.1}}, "token_log_probs is {'5': 0.1}, and log-prob"),
        ({"id": "t", "o": '{"text": "5", "logprobs": [-1.0]}'}, "o is JSON as text, which holds"),
        ({"id": "t", "o": json.dumps(CHAT)}, r"an answer \(JSON as text\): --columns response=o"),
        ({"id": "t", "o": [CHAT, CHAT]}, r"an answer \(the first of 2 at o\): --columns response"),
    ],
)
def test_the_message_is_true(row, message):
    with pytest.raises(InputError) as raised:
        answers_in([row], Reading())
    assert re.search(message, raised.value.args[0])


def test_rows_two_keys_down_are_read(tmp_path):
    rows = [{"id": f"r{n}", "response": {"output": "5", "logProbs": [-0.5 * n]}} for n in (1, 2)]
    documents = [
        {"results": {"prompts": [{"raw": "q"}, {"raw": "p"}], "results": rows}, "config": {}},
        {"run": {"eval": {"items": rows}}, "version": 3},
        {"prompts": [{"raw": "q"}], "results": rows},
    ]
    for document in documents:
        (tmp_path / "a.json").write_text(json.dumps(document))
        frame = read_file(tmp_path / "a.json").frame
        assert frame["example_id"].to_list() == ["r1", "r2"]
        assert frame["surprisal"].to_list() == [[0.5], [1.0]]


@pytest.mark.parametrize(
    "logprobs",
    [
        [["Os", -0.1], ["lo", -0.2]],
        [[7, -0.1], [8, -0.2]],
        [[-0.1, 7, "Os"], [-0.2, 8, None]],
        [{"text": "Os", "logprob": -0.1}, {"text": "lo", "logprob": -0.2}],
        {
            "tokens": [7, 8],
            "token_logprobs": [-0.1, -0.2],
            "top_logprobs": [{"7": -0.1}, {"8": -0.2}],
        },
    ],
)
def test_lists_of_ids_of_lists_and_of_texts(logprobs):
    frame = answers_in([{"id": "a", "answer": "Oslo", "logprobs": logprobs}], Reading()).frame
    assert frame["surprisal"].to_list() == [pytest.approx([0.1, 0.2])]


@pytest.mark.parametrize(
    "entry", [[True, -0.1], ["a", "b"], ["a"], [-0.1, 7, 7], [None, None], [[1]]]
)
def test_lists_of_other_things_are_refused(entry):
    with pytest.raises(InputError, match="an entry of its logprobs is"):
        answers_in([{"id": "a", "answer": "Oslo", "logprobs": [entry]}], Reading())


def test_the_stop_token_among_own_tokens_is_inferred():
    rows = [
        {"id": name, "answer": "Oslo.", "tokens": tokens, "logprobs": [-0.1] * len(tokens)}
        for name, tokens in (
            ("a", ["Oslo", ".", "</s>"]),
            ("b", ["Oslo", "."]),
            ("c", ["▁Oslo", "."]),
        )
    ]
    found = answers_in(rows, Reading()).frame["stop_token"].to_list()
    assert found == ["included", "absent", "unknown"]
