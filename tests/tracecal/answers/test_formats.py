"""Formats of programs whose answers few read, in the shapes that the programs really wrote.

The files in `real/` were written by the programs that their test names, in front of a small server
on this machine that gave one answer, "Oslo." with two tokens.
"""

import json
from pathlib import Path

import pytest

from support.log_rows import token, write
from tracecal.answers.answers import answers_in, read_file
from tracecal.answers.facts import find_question
from tracecal.answers.formats.layouts import FORMATS
from tracecal.answers.reading import Reading
from tracecal.errors import InputError

REAL = Path(__file__).with_name("real") / "oslo.jsonl"
OSLO = [("Oslo", -0.2), ("Bergen", -2.5)]
DOT = [(".", -0.1), ("!", -2.9)]
LISTS = {
    "tokens": ["Oslo", "."],
    "token_logprobs": [-0.2, -0.1],
    "top_logprobs": [dict(OSLO), dict(DOT)],
    "text_offset": [0, 4],
}
OBJECTS = [token("Oslo", -0.2, OSLO), token(".", -0.1, DOT)]


@pytest.fixture
def read(tmp_path):
    """Reads rows; gives the answers as dicts."""

    def reader(*rows, **reading):
        path = write(tmp_path / "a.jsonl", rows)
        return read_file(path, Reading(vocabulary=1000, **reading)).frame.to_dicts()

    return reader


def chat(logprobs, **message):
    message = {"role": "assistant", "content": "Oslo."} | message
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": logprobs}
    return {"id": "q", "object": "chat.completion", "model": "m", "choices": [choice]}


@pytest.mark.parametrize(
    ("program", "form", "top_k", "model"),
    [
        ("langchain-openai 1.7.4, model_dump", "langchain", 3, "m"),
        ("langchain-openai 1.7.4, message_to_dict", "langchain", 3, "m"),
        ("langchain-core 1.8.3, dumpd", "langchain", 3, "m"),
        ("dspy 3.4.1, LM.history", "outputs", 3, "m"),
        ("google-genai 3.6.1, model_dump_json", "gemini", 2, "gemini-x"),
        ("google-genai 3.6.1, to_json_dict", "gemini", 2, "gemini-x"),
        ("cohere 7.3.1, ClientV2.chat", "cohere", None, None),
        ("huggingface_hub 2.4.0, text_generation with details", "tgi", 2, None),
        ("litellm 1.110.2, spend log", None, 3, "m"),  # its response is JSON in a text
    ],
)
def test_what_programs_really_wrote_is_read(read, program, form, top_k, model):
    rows = {row["program"]: row for row in map(json.loads, REAL.read_text().splitlines())}
    row = rows[program]
    if form is not None:
        assert FORMATS.layout_of(row if form == "outputs" else row["response"]).name == form
    (answer,) = read(row)
    assert answer["answer"] == "Oslo."
    assert answer["surprisal"][:2] == pytest.approx([0.2, 0.1])
    assert (answer["top_k"], answer["model"]) == (top_k, model)
    assert (answer["entropy"] is None) == (top_k is None)
    assert answer["stop_token"] == ("included" if form == "tgi" else "absent")


def test_a_spend_log_has_its_request_and_its_question(tmp_path):
    asked = {
        "model": "m",
        "temperature": 0.7,
        "messages": [{"role": "user", "content": "Capital?"}],
    }
    row = {"request_id": "r", "messages": "{}", "proxy_server_request": json.dumps(asked)}
    path = write(tmp_path / "a.jsonl", [row | {"response": json.dumps(chat(LISTS))}])
    found = answers_in(path, keep_rows=True)
    assert found.frame["decoding"].to_list() == ["temperature 0.7"]
    assert [find_question(row, None)["question"] for row in found.rows] == ["Capital?"]
    with pytest.raises(InputError, match="LiteLLM kept no response .store_prompts_in_spend_logs"):
        read_file(write(tmp_path / "a.jsonl", [row | {"response": "{}"}]))


OWN = {"id": "q", "answer": "Oslo."}
BY_ID = [
    {"7": {"logprob": -0.2, "rank": 1, "decoded_token": "Oslo"}, "8": {"logprob": -2.5}},
    {"9": {"logprob": -0.1, "rank": 1, "decoded_token": "."}, "5": {"logprob": -2.9}},
]
FLAT = {  # vLLM 0.32's FlatLogprobs
    "start_indices": [0, 2],
    "end_indices": [2, 4],
    "token_ids": [7, 8, 9, 5],
    "logprobs": [-0.2, -2.5, -0.1, -2.9],
    "ranks": [1, 2, 1, 2],
    "decoded_tokens": ["Oslo", "Bergen", ".", "!"],
}
CAMEL = [
    {"topLogprobs" if name == "top_logprobs" else name: value for name, value in each.items()}
    for each in OBJECTS
]
RESPONSES = {
    "id": "q",
    "output": [{"type": "message", "content": [{"text": "Oslo.", "logprobs": OBJECTS}]}],
}


@pytest.mark.parametrize(
    "row",
    [
        chat(LISTS),  # Together, older vLLM and llama-cpp-python
        chat({"content": None, **LISTS}),
        chat({"content": OBJECTS}, content=[{"type": "text", "text": "Oslo."}]),
        chat({"content": CAMEL}),
        {"id": "q", "choices": [{"text": "Oslo.", "logprobs": LISTS}]},
        OWN | {"logprobs": OBJECTS},
        OWN | {"logprobs": {"content": OBJECTS, "refusal": None}},
        OWN | {"logprobs": LISTS},
        OWN | {"logprobs": CAMEL},
        OWN | {"tokens": OBJECTS},
        OWN | {"token_ids": [7, 9], "logprobs": BY_ID},
        OWN
        | {"token_logprobs": [-0.2, -0.1], "top_logprobs": [dict(OSLO), dict(DOT)]}
        | {"stop_token": "absent"},  # which no texts of tokens tell
        {"id": "q", "output": "Oslo.", "gold": "Oslo", "logprobs": OBJECTS},
        {"id": "q", "outputs": [{"text": "Oslo.", "token_ids": [7, 9], "logprobs": BY_ID}]},
        {"id": "q", "outputs": [{"text": "Oslo.", "token_ids": [7, 9], "logprobs": FLAT}]},
        {"id": "q", "response": {"status_code": 200, "body": json.dumps(chat(LISTS))}},
        {"id": 3.0, "response": json.dumps(chat(LISTS))},
        RESPONSES,
    ],
)
def test_one_answer_in_any_form_has_the_same_numbers(read, row):
    (same,), (answer,) = read(chat({"content": OBJECTS})), read(row)
    names = "answer", "surprisal", "entropy", "entropy_upper", "top_k", "stop_token"
    assert {name: answer[name] for name in names} == {name: same[name] for name in names}
    assert answer["example_id"] == ("3" if row["id"] == 3.0 else "q")


def test_what_a_row_states_beside_its_token_objects_is_read(read):
    stated = {"stop_token": "absent", "processed": "no", "finish_reason": "stop", "model": "m"}
    (answer,) = read(OWN | stated | {"logprobs": OBJECTS})
    assert {name: answer[name] for name in stated} == stated


def test_of_several_texts_the_one_that_the_tokens_spell_is_the_answer(read):
    (answer,) = read({"id": "q", "answer": "Rome", "output": "Oslo.", "logprobs": OBJECTS})
    assert answer["answer"] == "Oslo."


@pytest.mark.parametrize(
    ("parts", "answer", "reasoning"),
    [
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}], "", "apart"),
        ([{"type": "reasoning", "summary": [{"text": "hm"}]}], "", "apart"),
        ([{"type": "image_url"}, " "], " ", "none"),
    ],
)
def test_content_in_parts(read, parts, answer, reasoning):
    row = chat({"content": OBJECTS}, content=[*parts, {"type": "text", "text": "Oslo."}])
    (found,) = read(row)
    assert (found["answer"], found["reasoning"]) == (answer + "Oslo.", reasoning)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            OWN | {"logprobs": [{"rank_1_token": "S", "rank_1_logprob": -0.1}]},
            "an entry of its logprobs is an object with 'rank_1_token', 'rank_1_logprob'; expected",
        ),
        (OWN | {"logprobs": BY_ID}, "no token_ids say which of the tokens were generated"),
        (OWN | {"logprobs": FLAT | {"ranks": [], "logprobs": []}}, "not vLLM's FlatLogprobs, in"),
        (OWN | {"logprobs": LISTS | {"tokens": ["Oslo", 5]}}, "one of its tokens is 5, no text"),
        (OWN | {"logprobs": {"values": [1]}}, "its logprobs are an object with 'values'"),
        (chat(LISTS | {"tokens": ["Oslo"]}), "it has 1 tokens and 2 log-probabilities"),
        (chat(LISTS | {"top_logprobs": [{}]}), "it has 1 lists of the likeliest and 2 tokens"),
        (OWN | {"id": 3.5, "token_logprobs": [-1]}, "its id is 3.5, a number with a fraction"),
        (
            {"id": "q", "response": {"status_code": 200, "body": "no"}},
            "its response.body is no JSON object with an answer",
        ),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path, row, reason):
    with pytest.raises(InputError) as error:
        read_file(write(tmp_path / "a.jsonl", [row]))
    assert reason in str(error.value)


def test_an_answer_that_is_json_itself_is_no_response_in_a_text(read):
    text = json.dumps({"text": "Oslo"})
    (answer,) = read({"id": "q", "response": text, "token_logprobs": [-0.1]})
    assert answer["answer"] == text


@pytest.mark.parametrize(
    ("asked", "decoding"),
    [
        ({"generationConfig": {"temperature": 1, "topP": 0.7}}, "top_p 0.7"),  # Gemini
        ({"inputs": "?", "parameters": {"temperature": 0.7}}, "temperature 0.7"),  # TGI
        ({"options": {"temperature": 0}}, ""),  # Ollama
        ({"text": "?", "sampling_params": {"min_p": 0.1}}, "min_p 0.1"),  # SGLang
    ],
)
def test_settings_within_a_request_are_found(read, asked, decoding):
    (answer,) = read(OWN | {"logprobs": OBJECTS, "request": asked})
    assert answer["decoding"] == decoding


def test_messages_of_a_responses_object(read):
    def message(text, logprobs, **more):
        return {"type": "message", "content": [{"text": text, "logprobs": logprobs}]} | more

    first = message("Let me see.", [], phase="commentary")
    halves = [message("Oslo", OBJECTS[:1]), message(".", OBJECTS[1:])]
    (answer,) = read({"id": "q", "output": [first, *halves]})
    assert answer["answer"] == "Oslo."
    assert answer["surprisal"] == pytest.approx([0.2, 0.1])
    (answer,) = read({"id": "q", "output": [halves[0], message(".", None)]})
    assert (answer["answer"], answer["surprisal"]) == ("Oslo.", None)
    assert answer["lacks"] == "the log-probability of token 2 is not given"


def two_choices(**row):
    logprobs = {"content": [token("a", -1.0)]}
    choices = [
        {"index": index, "message": {"content": text}, "logprobs": logprobs}
        for index, text in ((1, "b"), (0, "a"))
    ]
    return {"id": "q", "response": {"id": "c", "choices": choices}} | row


def test_several_choices_are_answers_of_their_own_whose_group_is_the_request(read):
    answers = read(two_choices(correct=[True, False]))
    names = "example_id", "answer", "group_id", "correct"
    assert [tuple(answer[name] for name in names) for answer in answers] == [
        ("q", "a", "q", True),
        ("q#choice-2", "b", "q", False),
    ]
    assert {answer["group_id"] for answer in read(two_choices(group_id="g"))} == {"g"}


def test_one_verdict_on_several_choices_is_refused(tmp_path):
    path = write(tmp_path / "a.jsonl", [two_choices(correct=True)])
    with pytest.raises(InputError, match="it has 2 choices, and correct is not a list of as many"):
        read_file(path)


@pytest.mark.parametrize("correct", [False, [False, True]])
def test_of_several_choices_the_first_may_be_read_alone(tmp_path, caplog, correct):
    path = write(tmp_path / "a.jsonl", [two_choices(correct=correct)])
    (answer,) = read_file(path, Reading(choices="first")).frame.to_dicts()
    assert (answer["example_id"], answer["answer"]) == ("q", "a")
    assert (answer["group_id"], answer["correct"]) == (None, False)
    assert "the first of several choices is read in 1 rows" in caplog.text


FAILURES = [
    {"id": "f", "error": {"message": "no"}},
    {"id": "f", "response": {"status_code": 429, "body": {"error": {"message": "slow down"}}}},
    {"id": "f", "response": {"status_code": 200, "body": {"error": {"message": "no"}}}},
    {"id": "f", "response": {"error": {"message": "no"}}},
]


@pytest.mark.parametrize("failure", FAILURES)
def test_requests_that_failed_stop_or_are_skipped_or_count_as_incorrect(tmp_path, failure):
    path = write(tmp_path / "a.jsonl", [OWN | {"logprobs": OBJECTS}, failure])
    with pytest.raises(
        InputError, match=r"line 2: request failed.*\(failed='unlabelled'\), incorr"
    ):
        read_file(path, Reading(failed="stop"))
    assert read_file(path).frame["correct"].to_list() == [None, None]
    skipped = read_file(path, Reading(failed="skip"))
    assert skipped.frame["example_id"].to_list() == ["q"]
    assert skipped.wrong_rows[0].startswith("line 2: request failed")
    counted = read_file(path, Reading(failed="incorrect")).frame.row(1, named=True)
    assert (counted["example_id"], counted["correct"]) == ("f", False)
    assert counted["surprisal"] is counted["answer"] is None
    assert counted["lacks"] == counted["no_answer"] == "request failed"


def test_generations_of_langchain_are_choices(read):
    messages = [
        {
            "content": text,
            "type": "ai",
            "id": f"run-{text}",
            "response_metadata": {"logprobs": None},
        }
        for text in "ab"
    ]
    batch = [{"text": "", "message": each} for each in messages]
    answers = read({"generations": [batch], "llm_output": {"model_name": "m"}})
    assert {answer["model"] for answer in answers} == {"m"}
    assert [answer["example_id"] for answer in answers] == ["run-a", "run-a#choice-2"]
    assert [answer["answer"] for answer in answers] == ["a", "b"]


TWO_OUTPUTS = [{"text": text, "logprobs": None} for text in "ab"]


@pytest.mark.parametrize(
    "row",
    [
        two_choices(correct=[True, False]),
        two_choices(epoch=2),
        {"request_id": "q", "outputs": TWO_OUTPUTS},
        {"id": "q", "response": {"candidates": [{"content": {"parts": [{"text": "a"}]}}] * 2}},
        {
            "id": 1,
            "epoch": 2,
            "input": "?",
            "output": {"choices": [{"message": {"content": text}} for text in "ab"]},
            "scores": {"match": {"value": "C"}},
        },
        *map(json.loads, REAL.read_text().splitlines()[:4]),
    ],
)
def test_rows_that_were_kept_are_read_again_as_the_same_answers(tmp_path, read, row):
    """As `tracecal pick` and `tracecal label` write them."""
    kept = answers_in(write(tmp_path / "b.jsonl", [row]), Reading(vocabulary=1000), keep_rows=True)
    assert read(*kept.rows) == kept.frame.to_dicts()


def eee(**row):
    return {
        "schema_version": "0.3.0",
        "evaluation_id": "e",
        "model_id": "org/m",
        "evaluation_name": "facts",
        "sample_id": "s1",
        "interaction_type": "single_turn",
        "input": {"raw": "Capital?", "formatted": "Q: Capital?\nA:", "reference": ["Oslo"]},
        "output": {"raw": ["Oslo."]},
        "answer_attribution": [],
        "evaluation": {"score": 1.0, "is_correct": True},
    } | row


def test_every_eval_ever_gives_text_and_verdict(read):
    turns = [{"turn_idx": 0, "role": "user", "content": "?"}, {"role": "assistant", "content": "A"}]
    single, agentic = read(
        eee(), eee(sample_id="s2", interaction_type="agentic", output=None, messages=turns)
    )
    assert (single["example_id"], single["answer"], single["model"]) == ("s1", "Oslo.", "org/m")
    assert (single["prompt"], single["correct"]) == ("Q: Capital?\nA:", True)
    assert (agentic["answer"], agentic["lacks"]) == ("A", "no log-probabilities are given")
    question = find_question(eee(), None)
    assert (question["question"], question["references"]) == ("Capital?", ["Oslo"])
