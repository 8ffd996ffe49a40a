"""Inputs as people report them, several of each kind: what each is read as at every door."""

import json

import pytest

import tracecal
from support.log_rows import token
from tracecal.answers.labels import read_labels
from tracecal.answers.reading import Reading
from tracecal.answers.verdict import parse_verdict
from tracecal.calibrator.scoring import score_response
from tracecal.errors import InputError, WrongVerdict

ANSWER = {"answer": "Oslo", "logprobs": [-0.25]}
VERDICTS = [
    *[(word, {}, True) for word in ("👍🏿", "✔︎", "🟩 pass", "Correct!", "**Correct.**", '"yes"')],
    *[(word, {}, True) for word in ("thumbs_up", "factual", "1 (correct)", "100,0 %", "\ufeffyes")],
    *[
        (word, {}, False)
        for word in ("👎🏻", "✕", "No.", "not_correct", "NOT-SUPPORTED", "0 (wrong)")
    ],
    *[(word, {}, None) for word in ("#N/A", "<NA>", "n.a.", "—")],
    *[(word, {"right_from": 4}, True) for word in ("5️⃣", "★★★★☆", "Strongly agree (5)", "4,5")],
    *[(word, {"right_from": 4}, False) for word in ("★★★☆☆", "rating: 3", "Partly - 2", "-1")],
    ("gut gemacht", {"right": ["Gut gemacht!"]}, True),
    ("partially-correct", {"wrong": ["partially correct"]}, False),
    ("2 - unusable", {"right": ["3"], "wrong": ["2 - unusable"]}, False),
]


@pytest.mark.parametrize("value, options, verdict", VERDICTS)
def test_words_of_verdicts(value, options, verdict):
    assert parse_verdict(value, Reading(**options)) is verdict
    row = {"id": "a", **ANSWER}
    for stated in ({"correct": value}, {"label": [value]}):
        frame = tracecal.read_answers([row | stated], reading=Reading(**options))
        assert frame["correct"].to_list() == [verdict]


@pytest.mark.parametrize(
    "value", ["1 - perfect", "grade: 1", "Correct, but late", "!", ["yes", "no"]]
)
def test_other_words_are_refused_as_they_are(value):
    with pytest.raises(WrongVerdict, match="neither right"):
        parse_verdict(value)


def task(kind, value, **annotation):
    result = {"type": kind, "from_name": "v", "value": {kind.lower(): value}}
    annotation = {"completed_by": 1, "result": [result], **annotation}
    return {"data": {"example_id": "q1"}, "annotations": [annotation]}


def argilla(value):
    response = {"value": value, "user_id": "u", "status": "submitted"}
    return {"metadata": {"example_id": "q1"}, "responses": {"v": [response]}}


RIGHT, WRONG = {"q1": True}, {"q1": False}
PEOPLE = "id,who,verdict,{}\nq1,A,no,{}\nq1,B,no,{}\nq1,C,yes,{}\n"
LABELS = {  # what a file holds, options, verdicts by id
    "majority": ("id,verdict\nq1,yes\nq1,no\nq1,Yes.\n", {}, RIGHT),
    "tie of four": ("id,verdict\nq1,1\nq1,0\nq1,1\nq1,0\n", {}, WRONG),
    "people beside one who is unsure": ("id,verdict\nq1,yes\nq1,?\nq1,no\n", {}, WRONG),
    "adjudicated: yes": (PEOPLE.format("adjudicated", "no", "no", "yes"), {}, RIGHT),
    "ground truth: 1.0": (PEOPLE.format("Ground truth", "0.0", "0.0", "1.0"), {}, RIGHT),
    "is final: x": (PEOPLE.format("is_final", "", "", "✓"), {}, RIGHT),
    "decimal commas": ("id;score\nq1;0,8\nq2;0,2\n", {"right_from": 0.5}, RIGHT | {"q2": False}),
    "bars": ("id|verdict|note\nq1|yes|a, b\n", {}, RIGHT),
    "title with commas": (
        "Review, May\n\nid,verdict,note\nq1,yes,x\nq2,no,y\n",
        {},
        {**RIGHT, "q2": False},
    ),
    "one-element lists": (
        [{"id": "q1", "verdict": [["yes"]]}, {"id": "q2", "verdict": []}],
        {},
        RIGHT,
    ),
    "label studio, numbers": ([task("number", 4)], {"right_from": 4}, RIGHT),
    "label studio, taxonomy": ([task("taxonomy", [["Correct"]])], {}, RIGHT),
    "label studio, capitals": ([task("Choices", ["✅ Correct"])], {}, RIGHT),
    "argilla, several labels": ([argilla(["yes"])], {}, RIGHT),
    "scale": ([{"id": "q1", "verdict": [["no"]]}], {}, WRONG),
    "doccano": ([{"id": "q1", "text": "x", "label": ["Correct"]}], {}, RIGHT),
}


def written(path, content):
    text = content if isinstance(content, str) else json.dumps(content)
    path = path.with_suffix(".csv" if isinstance(content, str) else ".json")
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", LABELS)
def test_labels(tmp_path, name):
    content, options, expected = LABELS[name]
    assert read_labels(written(tmp_path / "labels", content), Reading(**options)).by_id == expected


@pytest.mark.parametrize(
    "listed, own",
    [
        ("1.0", "1"),
        ("123", "00123"),
        ("abc_1", "ABC-1"),
        ("\u200bq1", "q1"),
        ("{3F2504E0-4F89-11D3}", "3f2504e04f8911d3"),
    ],
)
def test_ids_as_tables_change_them(tmp_path, listed, own):
    path = written(tmp_path / "labels", f"id,verdict\n{listed},yes\n")
    frame = tracecal.read_answers([{"id": own, **ANSWER}], reading=Reading(labels=path))
    assert frame["correct"].to_list() == [True]


CHOICES = {"choices": [{"text": "x", "index": 0}, {"text": "y", "index": 1}]}
SAMPLE = {"epoch": 1, "input": "q", "output": {"choices": [{"message": {"content": "x"}}]}}
SCORES = {"scores": {"judge": {"value": "C"}, "match": {"value": "I"}}}


@pytest.mark.parametrize(
    "row",
    [
        {**ANSWER, "correct": ["yes", "no"]},
        {**ANSWER, "correct": {"choices": "yes"}, "label": "maybe"},
        {**ANSWER, "wrong_spans": [[5, 2]]},
        {**CHOICES, "correct": True},
        {**SAMPLE, **SCORES},
    ],
)
def test_rows_whose_verdict_is_wrong_are_never_skipped(row):
    rows = [{"id": "a", **ANSWER, "correct": True}, {"id": "b", **row}]
    with pytest.raises(InputError, match=r"row 2: .* Correct them[.]$"):
        tracecal.read_answers(rows, reading=Reading(wrong_rows="skip"))


@pytest.mark.parametrize(
    "content, options",
    [
        ("id,verdict\nq1,yes\nq2,perhaps\n", {}),
        ("id,verdict,who\nq1,yes,A\nq2,no,\n", {"who": "who"}),
        (
            [
                task("choices", ["yes"]),
                {
                    "data": {"example_id": "q2"},
                    "annotations": [
                        {
                            "result": [
                                {
                                    **task("choices", ["yes"])["annotations"][0]["result"][0],
                                    "from_name": name,
                                }
                                for name in "vw"
                            ]
                        }
                    ],
                },
            ],
            {},
        ),
    ],
)
def test_labels_that_are_wrong_are_never_skipped(tmp_path, content, options):
    path = written(tmp_path / "labels", content)
    with pytest.raises(InputError, match=r"2: .* Correct them[.]$"):
        read_labels(path, Reading(wrong_rows="skip", **options))


def chat(finish="stop", tokens=None, body=None, **message):
    choice = {"index": 0, "finish_reason": finish, "message": {"content": None} | message}
    choice["logprobs"] = tokens and {"content": [token(text, -0.25) for text in tokens]}
    return {"object": "chat.completion", "model": "m", "choices": [choice], **(body or {})}


def gemini(finish, **content):
    return {"candidates": [{"finishReason": finish, **content}], "modelVersion": "m"}


def langchain(**message):
    return {"type": "ai", "content": "", "response_metadata": {"finish_reason": "stop"}, **message}


def batch(status, body):
    return {"error": None, "response": {"status_code": status, "request_id": "r", "body": body}}


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
AZURE = {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}
VLLM = {"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}
SPEND = {"proxy_server_request": "{}", "response": "{}"}  # LiteLLM's spend logs
NOT_GIVEN = {
    "refused": [
        chat("refusal", content="I"),
        langchain(response_metadata={"stop_reason": "refusal"}),
        {"output": [{"message": {"refusal": "I can't."}, "finish_reason": "stop"}]},  # Braintrust
    ],
    "filtered": [
        batch(400, {"error": AZURE}),
        {"status": "failure", "error_str": "litellm.ContentPolicyViolationError: no"},
        {"text": "", "finishReason": "content-filter"},  # Vercel's AI SDK
        chat("sensitive", content=""),  # GLM
        gemini("IMAGE_SAFETY"),
    ],
    "request failed": [
        batch(200, VLLM),
        VLLM,
        {"status": "failure", "error_str": "litellm.RateLimitError: slow down", "response": {}},
        {"status": "failure", **SPEND},
        {
            "type": "GENERATION",
            "level": "ERROR",
            "statusMessage": "429",
            "output": None,
        },  # Langfuse
        {"status": "Bad Request: {}", "request": {"contents": []}, "response": {}},  # Vertex
        {"response": None},
        chat("insufficient_system_resource", ["Os"], content="Os"),  # DeepSeek
        {"message": {"content": []}, "finish_reason": "TIMEOUT"},  # Cohere
    ],
    "called a tool": [
        langchain(tool_calls=[], invalid_tool_calls=[{"name": "f", "args": "{"}]),
        langchain(additional_kwargs={"function_call": {"name": "f", "arguments": "{}"}}),
        {"outputs": [{"text": None, "tool_calls": [CALL]}], "messages": []},  # dspy
        {"output": [{"type": "mcp_approval_request", "name": "f"}], "object": "response"},
        gemini("UNEXPECTED_TOOL_CALL"),
        chat("tool_calls", ["<tool_call>", "{}"], content="\n", tool_calls=[CALL]),
    ],
    "empty": [
        chat("stop", ["<|im_end|>"]),
        {"candidates": None, "prompt_feedback": None, "model_version": "m"},
        {"model": "m", "created_at": "", "response": "", "done": True, "done_reason": "load"},
    ],
    "cut while reasoning": [
        chat("length", None, {"usage": {"reasoning_tokens": 64}}),
        {"answer": "", "reasoning_content": "See", "finish_reason": "length", "logprobs": [-0.25]},
        chat("length", content="<|channel|>analysis<|message|>See"),
        chat("length", content="<|begin_of_thought|>See"),
    ],
}
CASES = [(reason, row) for reason, rows in NOT_GIVEN.items() for row in rows]


@pytest.mark.parametrize("reason, row", CASES)
def test_answers_that_were_not_given(calibrator, reason, row):
    rows = [{"custom_id": "a", **row}, {"custom_id": "b", **ANSWER}]
    frame = tracecal.read_answers(rows)
    assert (frame["no_answer"].to_list(), frame["surprisal"][0]) == ([reason, None], None)
    if not row.keys().isdisjoint(("choices", "candidates", "object")):  # a server's response
        score = score_response(calibrator, row)
        assert (score.probability, score.reason) == (None, reason)


def test_rows_that_failed_need_no_named_columns():
    paths = {"answer": "out.text", "logprobs": "out.lps"}
    rows = [{"id": "a", "out": {"text": "Oslo", "lps": [-0.25]}}, {"id": "b", "error": "timed out"}]
    frame = tracecal.read_answers(rows, reading=Reading(columns=paths))
    assert frame["no_answer"].to_list() == [None, "request failed"]


THOUGHTS, CALLS = ["<think>", "See", "</think>", "\n\n"], ["<tool_call>", "{}", "</tool_call>"]


@pytest.mark.parametrize(
    "row",
    [
        chat("tool_calls", ["Oslo", ".\n", *CALLS], content="Oslo.", tool_calls=[CALL]),
        chat("stop", [*THOUGHTS, "Oslo", ".", *CALLS], content="Oslo.", function_call=CALL),
        chat(
            *("tool_calls", [*THOUGHTS, "Oslo", ".", *CALLS]),
            **{"content": "Oslo.", "reasoning_content": "See", "tool_calls": [CALL]},
        ),
    ],
)
def test_of_a_text_with_a_tool_call_its_own_tokens_are_scored(row):
    (record,) = tracecal.read_answers([{"id": "a", **row}]).to_dicts()
    assert (record["answer"], record["no_answer"]) == ("Oslo.", None)
    assert "".join(record["tokens"]).strip() == "Oslo."


MARKED = [  # the texts of the tokens before an answer
    ["<|begin_of_thought|>", "See", "<|end_of_thought|>", "<|begin_of_solution|>"],
    ["<|START_THINKING|>", "See", "<|END_THINKING|>", "<|START_TEXT|>"],
    ["<think>", "a", "</think>", "\n\n", "<think>", "b", "</think>", "\n"],
    ["<seed:think>", "See", "</seed:think>", "\n"],
]


@pytest.mark.parametrize("before", MARKED)
def test_marks_of_reasoning(before):
    tokens = [*before, "Oslo", "."]
    row = chat("stop", tokens, content="".join(tokens))
    (record,) = tracecal.read_answers([{"id": "a", **row}]).to_dicts()
    assert (record["answer"], record["reasoning"]) == ("Oslo.", "apart")
    assert record["tokens"] == ["Oslo", "."]


@pytest.mark.parametrize(
    "opening, closing",
    [
        ("<answer>", "</answer>"),
        ("<response>", "</response>"),
        ("<|begin_of_box|>", "<|end_of_box|>"),
    ],
)
def test_marks_of_an_answer_that_a_parser_drops(opening, closing):
    tokens = ["<think>", "See", "</think>", "\n", opening, "Oslo", ".", closing]
    row = chat("stop", tokens, content="Oslo.", reasoning_content="See")
    (record,) = tracecal.read_answers([{"id": "a", **row}]).to_dicts()
    assert record["tokens"] == ["Oslo", ".", closing]
    assert record["stop_token"] == "included"


@pytest.mark.parametrize(
    "usage",
    [{"output_tokens_details": {"reasoning_tokens": 9}}, {"thoughtsTokenCount": 9}],
)
def test_counts_of_hidden_thoughts_beside_own_columns(usage):
    row = {"id": "a", "text": "Oslo", "logprobs": [token("Oslo", -0.25)], "usage": usage}
    assert tracecal.read_answers([row])["reasoning"].to_list() == ["apart"]


def parts(*spellings, text=None):
    """Tokens of a chat by their bytes, as clients name those that split a character."""
    return [token(text or repr(part)[2:-1], -0.25, bytes=[*part]) for part in spellings]


UMLAUT = [b"Z", b"\xc3", b"\xbc", b"rich"]


@pytest.mark.parametrize(
    "row",
    [
        {"message": {"content": "Zürich"}, "logprobs": {"content": parts(*UMLAUT)}},
        {"text": "Zürich", "logprobs": parts(*UMLAUT, text="\ufffd")},
        {
            "text": "Zürich",
            "logprobs": [
                token(text, -0.25, bytes=None) for text in ("Z", "<0xC3>", "<0xBC>", "rich")
            ],
        },
        {
            "choices": [
                {
                    "text": "Zürich",
                    "logprobs": {
                        "tokens": ["Z", "bytes:\\xc3", "bytes:\\xbc", "rich"],
                        "token_logprobs": [-0.25] * 4,
                    },
                }
            ]
        },
    ],
)
def test_bytes_spell(row):
    (record,) = tracecal.read_answers([{"id": "a", **row}]).to_dicts()
    assert (record["answer"], record["tokens"]) == ("Zürich", ["Z", "", "ü", "rich"])
    assert record["stop_token"] == "absent"


RESPONSE = chat("stop", ["Oslo", "."], content="Oslo.")
CHOICE = RESPONSE["choices"][0]
PAIRS = ([-0.25, "Oslo"], ["Oslo", 5, -0.25], [5, "Oslo", -0.25], ["Oslo", -0.25])
WRAPPED = [
    *[{"text": "Oslo", "logprobs": [pair]} for pair in PAIRS],
    {"text": "Oslo", "logprobs": "[-0.25]", "tokens": '["Oslo"]'},
    {"text": "Oslo.", "logprobs": json.dumps(CHOICE["logprobs"])},
    {"output": [CHOICE], "metadata": {"temperature": 1}},  # Braintrust
    CHOICE,
    {"response": {"status_code": 200, "text": json.dumps(RESPONSE)}},  # a logged httpx response
    {"outputs": json.dumps(RESPONSE), "inputs": {"messages": []}},
]


@pytest.mark.parametrize("row", WRAPPED)
def test_tokens_in_other_forms_and_wrappers(row):
    (record,) = tracecal.read_answers([{"custom_id": "a", **row}]).to_dicts()
    assert record["answer"].startswith("Oslo")
    assert record["surprisal"][0] == pytest.approx(0.25)
    assert record["tokens"][0] == "Oslo"


@pytest.mark.parametrize(
    "row, sentence",
    [
        ({"text": "Oslo", "tokens": [{"token": "Oslo", "log_prob": -0.25}]}, "'token', 'log_prob'"),
        ({"text": "Oslo", "logprobs": [{"Oslo": -0.25}]}, "is an object with 'Oslo'; expected"),
        ({"out": {"text": "Oslo", "lps": [-0.25, -1.0]}}, r"{'logprobs': 'out.lps', 'answer': "),
    ],
)
def test_tokens_that_cannot_be_read_are_one_true_sentence(row, sentence):
    with pytest.raises(InputError, match=sentence):
        tracecal.read_answers([{"id": "a", **row}])


def events(*pieces):
    return "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces) + "data: [DONE]\n\n"


def piece(text, finish=None, **more):
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    choice["logprobs"] = {"content": [token(text, -0.25)]} if text else None
    return {"object": "chat.completion.chunk", "id": "c", "model": "m", "choices": [choice], **more}


ERROR = {"error": {"message": "the engine stopped", "code": 500}}
BEGUN = {"type": "response.created", "response": {"id": "r", "output": [], "model": "m"}}
OLLAMA = {"model": "m", "created_at": "", "response": "Os", "done": False}
STREAMS = [  # answers that a server broke off, or did not begin
    (events(piece("Os"), ERROR), "request failed"),
    (events(piece("Os"), piece("", "error", **ERROR)), "request failed"),
    (events(piece("Os"), {"object": "error", "message": "too long"}), "request failed"),
    (events(ERROR), "request failed"),
    (events(BEGUN, {"type": "error", "code": "server_error", "message": "no"}), "request failed"),
    (f"{json.dumps(OLLAMA)}\n{json.dumps(ERROR)}", "request failed"),
    (events({"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "m"}), "filtered"),
]


@pytest.mark.parametrize("text, reason", STREAMS)
def test_streams_that_failed(tmp_path, text, reason):
    frame = tracecal.read_answers([{"custom_id": "a", "response": text}])
    assert (frame["no_answer"].to_list(), frame["surprisal"].to_list()) == ([reason], [None])
    path = tmp_path / "saved.txt"
    path.write_text(text, encoding="utf-8")
    if reason != "filtered":
        assert tracecal.read_answers(path)["no_answer"].to_list() == [reason]
