"""Answers that were not given: refusals, tool calls, empty texts and more, in every format."""

import polars as pl
import pytest

from support.log_rows import chat, token, write
from tracecal.answers.answers import describe_no_answers, read_answers, read_file
from tracecal.answers.reading import Reading
from tracecal.errors import InputError

CALL = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
TOKENS = [token("Oslo", -0.2), token(".", -0.1)]
CALL_TOKENS = [token("<tool_call>", -0.3), token("{}", -0.4)]


def message(finish="stop", logprobs=None, **fields):
    choice = {"index": 0, "message": {"role": "assistant", "content": None} | fields}
    return {
        "object": "chat.completion",
        "model": "m",
        "choices": [choice | {"finish_reason": finish, "logprobs": logprobs}],
    }


def response(*items, status="completed", **more):
    return {"object": "response", "model": "m", "status": status, "output": list(items)} | more


def output(*parts):
    return {"type": "message", "role": "assistant", "content": list(parts)}


def gemini(finish, *parts):
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"finishReason": finish, "content": content}], "modelVersion": "m"}


def langchain(finish, content="", **more):
    metadata = {"finish_reason": finish, "model_name": "m", "logprobs": None}
    return {"type": "ai", "content": content, "response_metadata": metadata} | more


def inspect(finish, content="", **more):
    choice = {"message": {"role": "assistant", "content": content} | more, "stop_reason": finish}
    return {"epoch": 1, "input": "q", "output": {"model": "m", "choices": [choice]}}


THOUGHT = {"reasoning_content": "Let me see."}
COUNTED = {"usage": {"completion_tokens_details": {"reasoning_tokens": 16}}}
REFUSAL_TOKENS = {"content": None, "refusal": [token("No", -0.1)]}
ROWS = {
    "refused": [
        message(refusal="I can't help.", logprobs=REFUSAL_TOKENS),
        message("refusal", content="I"),
        message(content=[{"type": "refusal", "refusal": "I can't help."}]),
        response(output({"type": "refusal", "refusal": "I can't help."})),
        langchain("stop", additional_kwargs={"refusal": "I can't help."}),
        {"choices": [{"index": 0, "text": "", "finish_reason": "refusal"}]},
        {"answer": "", "finish_reason": "refusal"},
    ],
    "called a tool": [
        message("tool_calls", tool_calls=[CALL]),
        message(tool_calls=[CALL], logprobs={"content": CALL_TOKENS}),
        message("function_call", function_call={"name": "f", "arguments": "{}"}),
        message("tool_calls", {"content": CALL_TOKENS}, content="Let me see.", tool_calls=[CALL]),
        message("tool_calls", content="Let me see.", tool_calls=[CALL]),
        response({"type": "function_call", "name": "f", "arguments": "{}"}),
        response({"type": "reasoning"}, {"type": "web_search_call"}),
        gemini("STOP", {"functionCall": {"name": "f", "args": {}}}),
        gemini("MALFORMED_FUNCTION_CALL"),
        langchain("tool_calls", tool_calls=[{"name": "f", "args": {}, "id": "c"}]),
        langchain("tool_use", [{"type": "tool_use", "name": "f", "input": {}}]),
        inspect("tool_calls", tool_calls=[{"id": "c", "function": "f", "arguments": {}}]),
        {"message": {"content": [], "tool_calls": [CALL]}, "finish_reason": "TOOL_CALL"},
        {"done": True, "message": {"role": "assistant", "content": "", "tool_calls": [CALL]}},
        {"answer": "", "finish_reason": "tool_calls"},
    ],
    "empty": [
        message(content=""),
        message(content=" \n"),
        chat([token("<|im_end|>", -0.1)], ""),
        message(**THOUGHT),
        {"object": "chat.completion", "model": "m", "choices": []},
        {"choices": [{"index": 0, "text": "", "finish_reason": "stop", "logprobs": None}]},
        response(output({"type": "output_text", "text": "", "logprobs": []})),
        gemini("STOP"),
        {"candidates": [], "modelVersion": "m"},
        langchain("stop"),
        inspect("stop"),
        {"epoch": 1, "input": "q", "messages": []},
        {"outputs": [{"text": "", "finish_reason": "stop", "logprobs": None}]},
        {"content": "", "stop_type": "eos", "completion_probabilities": []},
        {"text": "", "meta_info": {"finish_reason": {"type": "stop"}}},
        {"generated_text": "", "details": {"finish_reason": "eos_token", "tokens": []}},
        {"message": {"content": []}, "finish_reason": "COMPLETE"},
        {"done": True, "response": "", "done_reason": "stop"},
        {"doc_id": 1, "arguments": [["q"]], "resps": [[""]]},
        {"answer": "", "logprobs": []},
    ],
    "filtered": [
        message("content_filter", content=""),
        message("content_filter", {"content": TOKENS}, content="Oslo."),
        response(status="incomplete", incomplete_details={"reason": "content_filter"}),
        gemini("SAFETY"),
        gemini("RECITATION", {"text": "Oslo"}),
        {"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "m"},
        langchain("content_filter"),
        inspect("content_filter"),
        {"choices": [{"index": 0, "text": "", "finish_reason": "content_filter"}]},
        {"message": {"content": []}, "finish_reason": "ERROR_TOXIC", "logprobs": []},
    ],
    "cut while reasoning": [
        message("length", **THOUGHT),
        message("length", {"content": TOKENS}, content="", **THOUGHT),
        message("length", content="<think>Let me see."),
        message("length", content="") | COUNTED,
        response(
            {"type": "reasoning", "summary": []},
            status="incomplete",
            incomplete_details={"reason": "max_output_tokens"},
        ),
        gemini("MAX_TOKENS", {"text": "Let me see.", "thought": True}),
        langchain("length", additional_kwargs=THOUGHT),
        inspect("max_tokens", [{"type": "reasoning", "reasoning": "Let me see."}]),
        {"done": True, "message": {"content": "", "thinking": "See"}, "done_reason": "length"},
        {"choices": [{"index": 0, "text": "<think>Let me see.", "finish_reason": "length"}]},
    ],
    "request failed": [
        {"error": {"message": "no"}},
        {"response": {"status_code": 429, "body": {"error": {"message": "slow down"}}}},
        {"response": {"error": {"message": "no"}}},
        {"error": {"message": "no"}, "output": {"model": "m", "choices": []}},
        message("error", content="Os"),
        response(status="failed"),
        {"outputs": [{"text": "Os", "finish_reason": "abort", "logprobs": None}]},
    ],
}
CASES = [(reason, row) for reason, rows in ROWS.items() for row in rows]


@pytest.mark.parametrize(("reason", "row"), CASES)
def test_an_answer_that_was_not_given_is_a_record_that_says_why(reason, row):
    frame = read_answers([{"example_id": "a", **row}, {"id": "b", "answer": "5"}])
    record = frame.row(0, named=True)
    assert (record["example_id"], record["no_answer"]) == ("a", reason)
    assert record["lacks"] == reason
    for name in ("surprisal", "entropy", "tokens", "token_ids", "partial", "correct"):
        assert record[name] is None, name
    assert frame["no_answer"][1] is None


@pytest.mark.parametrize(("reason", "row"), CASES)
@pytest.mark.parametrize(("verdict", "correct"), [(True, True), (False, False), (None, False)])
def test_a_verdict_decides_and_without_one_the_setting(reason, row, verdict, correct):
    row = {"example_id": "a", "correct": verdict, **row}
    record = read_answers([row], reading=Reading(failed="incorrect")).row(0, named=True)
    assert record["correct"] is correct
    assert read_answers([row])["correct"].to_list() == [verdict]


def test_a_refusal_is_shown_as_the_answer():
    (row,) = read_answers([{"id": "a", **ROWS["refused"][0]}]).to_dicts()
    assert (row["answer"], row["model"]) == ("I can't help.", "m")


@pytest.mark.parametrize(
    ("tokens", "stop_token"), [(TOKENS, "absent"), (TOKENS + CALL_TOKENS, "none")]
)
def test_of_a_text_before_a_tool_call_the_texts_tokens_are_the_trace(tokens, stop_token):
    row = message("tool_calls", {"content": tokens}, content="Oslo.", tool_calls=[CALL])
    (record,) = read_answers([{"id": "a", **row}]).to_dicts()
    assert record["surprisal"] == pytest.approx([0.2, 0.1])
    assert (record["no_answer"], record["answer"]) == (None, "Oslo.")
    assert (record["tokens"], record["stop_token"]) == (["Oslo", "."], stop_token)


def test_the_entropies_that_a_row_states_are_cut_before_a_tool_call_as_its_tokens_are():
    row = {"id": "a", "answer": "Oslo.", "finish_reason": "tool_calls"}
    row |= {"tokens": ["Oslo", ".", "{}"], "logprobs": [-0.2, -0.1, -0.4]}
    (record,) = read_answers([row | {"entropy": [0.5, 0.25, 1.0]}]).to_dicts()
    assert record["no_answer"] is None and record["tokens"] == ["Oslo", "."]
    assert record["surprisal"] == pytest.approx([0.2, 0.1])
    assert record["entropy"] == [0.5, 0.25]


def test_each_choice_of_a_row_is_an_answer_in_order():
    choices = [
        {"index": 0, **message(refusal="No.")["choices"][0]},
        chat()["choices"][0] | {"index": 1},
        message("tool_calls", tool_calls=[CALL])["choices"][0] | {"index": 2},
    ]
    frame = read_answers([{"id": "q", "model": "m", "choices": choices}])
    assert frame["example_id"].to_list() == ["q", "q#choice-2", "q#choice-3"]
    assert frame["no_answer"].to_list() == ["refused", None, "called a tool"]


def test_they_are_counted_and_said(tmp_path, caplog):
    rows = [{"id": "a", **ROWS["refused"][0]}, {"id": "b", **chat(), "correct": True}]
    rows += [{"id": f"c{n}", **ROWS["called a tool"][0]} for n in range(2)]
    path = write(tmp_path / "a.jsonl", rows)
    frame = read_answers(path)
    text = "4 answers: 2 call a tool, 1 refuses; 3 of these have no verdict"
    assert describe_no_answers(frame).startswith(text)
    assert f"{path}: {text}" in caplog.text
    assert describe_no_answers(frame.filter(pl.col("no_answer").is_null())) is None


def test_labels_decide_and_the_setting_where_they_are_silent(tmp_path):
    rows = [{"id": name, **ROWS["refused"][0]} for name in "ab"] + [{"id": "c", **chat()}]
    path, labels = write(tmp_path / "a.jsonl", rows), tmp_path / "labels.csv"
    labels.write_text("id,correct\na,yes\nc,no\n")
    frame = read_answers(path, reading=Reading(labels=str(labels), failed="incorrect"))
    assert frame["correct"].to_list() == [True, False, False]
    frame = read_answers(path, reading=Reading(labels=str(labels)))
    assert frame["correct"].to_list() == [True, None, False]


def test_only_a_files_request_errors_stop_or_are_skipped(tmp_path):
    rows = [{"id": f"{n}", **row} for n, (_, row) in enumerate(CASES)]
    rows = [row for row in rows if row not in ROWS["request failed"]]
    failed = [{"id": "f", "error": {"message": "no"}}]
    path = write(tmp_path / "a.jsonl", rows + failed)
    with pytest.raises(InputError, match=r"request failed.*\(failed='unlabelled'\)"):
        read_file(path, Reading(failed="stop"))
    skipped = read_file(path, Reading(failed="skip"))
    assert "f" not in skipped.frame["example_id"].to_list()
    assert skipped.frame["no_answer"].null_count() == 0
