"""Saved streams of each server: joined, they are the answer that the server gives without streaming."""

import json

import pytest

from support.log_rows import write
from tracecal.answers.answers import read_file
from tracecal.answers.reading import Reading
from tracecal.errors import InputError

TOKENS = (("Os", -0.2, "Ber", -1.9), ("lo", -0.1, "car", -2.5), (".", -0.3, "!", -1.6))
TEXT = "Oslo."


def logprob(token):
    text, value, other, of_other = token
    tops = [{"token": text, "logprob": value}, {"token": other, "logprob": of_other}]
    return {"token": text, "logprob": value, "top_logprobs": tops}


def gemini(camel=True, ids=True):
    def name(text):
        head, *tail = text.split("_")
        return head + "".join(map(str.title, tail)) if camel else text

    def candidate(token, number):
        text, value, other, of_other = token
        chosen = {"token": text, name("token_id"): number, name("log_probability"): value}
        rival = {"token": other, name("token_id"): 90 + number, name("log_probability"): of_other}
        result = {
            name("chosen_candidates"): [chosen],
            name("top_candidates"): [{"candidates": [chosen, rival]}],
        }
        content = {"parts": [{"text": text}], "role": "model"}
        return {"content": content, "index": 0, name("logprobs_result"): result}

    shared = {name("model_version"): "gemini-2.5-flash"}
    shared |= {name("response_id"): "r1"} if ids else {}
    pieces = [
        {"candidates": [candidate(token, number)]} | shared for number, token in enumerate(TOKENS)
    ]
    pieces[-1]["candidates"][0][name("finish_reason")] = "STOP"
    return pieces


def ollama(chat=True):
    def piece(text, **more):
        answer = {"message": {"role": "assistant", "content": text}} if chat else {"response": text}
        return {"model": "qwen3:0.6b", "created_at": "2026-11-02T10:00:00Z"} | answer | more

    pieces = [piece(token[0], done=False, logprobs=[logprob(token)]) for token in TOKENS]
    return [*pieces, piece("", done=True, done_reason="stop", eval_count=4)]


def tgi():
    pieces = []
    for number, (text, value, other, of_other) in enumerate(TOKENS, 1):
        token = {"id": number, "text": text, "logprob": value, "special": False}
        rival = {"id": 90 + number, "text": other, "logprob": of_other, "special": False}
        piece = {"index": number, "token": token, "top_tokens": [token, rival]}
        pieces.append(piece | {"generated_text": None, "details": None})
    ending = {"finish_reason": "length", "generated_tokens": 3, "seed": None}
    pieces[-1] |= {"generated_text": TEXT, "details": ending}
    return pieces


def llama_cpp():
    def piece(token, number):
        text, value, other, of_other = token
        chosen = {"id": number, "token": text, "bytes": [*text.encode()], "logprob": value}
        rival = {"id": 90 + number, "token": other, "bytes": [*other.encode()]}
        top = [dict(chosen), rival | {"logprob": of_other}]
        probabilities = [chosen | {"top_logprobs": top}]
        begin = {"index": 0, "content": text, "tokens": [number], "stop": False, "id_slot": 0}
        return begin | {"completion_probabilities": probabilities}

    pieces = [piece(token, number) for number, token in enumerate(TOKENS)]
    ending = {"content": "", "tokens": [], "stop": True, "stop_type": "eos", "model": "m.gguf"}
    return [*pieces, ending | {"generation_settings": {"temperature": 0.0}}]


def responses(is_whole=False):
    message = {"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant"}
    begin = {"id": "resp_1", "model": "gpt-4.1-mini", "status": "in_progress", "output": []}
    thought = {"id": "rs_1", "type": "commentary", "content": None}
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    place = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    events = [
        {"type": "response.created", "response": begin},
        {"type": "response.in_progress", "response": begin},
        {"type": "response.output_item.added", "output_index": 0, "item": thought},
        {"type": "response.output_item.done", "output_index": 0, "item": thought},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": message | {"content": []},
        },
        {"type": "response.content_part.added", "part": part} | place,
        *(
            {"type": "response.output_text.delta", "delta": token[0], "logprobs": [logprob(token)]}
            | place
            for token in TOKENS
        ),
    ]
    if not is_whole:
        return events
    text = part | {"text": TEXT, "logprobs": list(map(logprob, TOKENS))}
    item = message | {"status": "completed", "content": [text]}
    ended = begin | {"status": "completed", "output": [item]}
    return [
        *events,
        {"type": "response.output_text.done", "text": TEXT, "logprobs": text["logprobs"]} | place,
        {"type": "response.output_item.done", "output_index": 1, "item": item},
        {"type": "response.completed", "response": ended},
    ]


def as_events(pieces):
    return "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces)


def as_lines(pieces):
    return "".join(f"{json.dumps(piece)}\n" for piece in pieces)


def as_list(pieces):
    return json.dumps(pieces, indent=1)


FORMS = (as_events, as_lines, as_list)
STREAMS = {
    "gemini": (gemini(), "r1", "stop"),
    "gemini without ids": (gemini(ids=False), "stream-1", "stop"),
    "gemini of the client": (gemini(camel=False), "r1", "stop"),
    "ollama chat": (ollama(), "stream-1", "stop"),
    "ollama generate": (ollama(chat=False), "stream-1", "stop"),
    "tgi": (tgi(), "stream-1", "length"),
    "llama_cpp": (llama_cpp(), "stream-1", "eos"),
    "responses": (responses(is_whole=True), "resp_1", "stop"),
}


def read(tmp_path, text):
    (tmp_path / "a.jsonl").write_text(text, encoding="utf-8")
    return read_file(tmp_path / "a.jsonl", Reading(vocabulary=1000)).frame


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_the_answer_that_it_spells(tmp_path, name, form):
    pieces, example_id, finish = STREAMS[name]
    (row,) = read(tmp_path, form(pieces)).to_dicts()
    assert (row["example_id"], row["answer"], row["finish_reason"]) == (example_id, TEXT, finish)
    assert row["surprisal"] == pytest.approx([0.2, 0.1, 0.3])
    assert row["top_k"] == 2 and len(row["entropy"]) == 3


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_was_cut_is_its_answer_so_far_without_a_finish(tmp_path, name, form):
    pieces, example_id, _ = STREAMS[name]
    if name == "responses":
        pieces = responses()
    n_tokens = {"gemini": 2, "tgi": 2}.get(name.split()[0], 3)
    cut = pieces if name == "responses" else pieces[:n_tokens]
    (row,) = read(tmp_path, form(cut)).to_dicts()
    assert (row["example_id"], row["finish_reason"]) == (example_id, None)
    assert row["answer"] == "".join(token[0] for token in TOKENS[:n_tokens])
    assert row["surprisal"] == pytest.approx([0.2, 0.1, 0.3][:n_tokens])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", STREAMS)
def test_streams_that_follow_one_another_are_an_answer_each(tmp_path, name, form):
    pieces = STREAMS[name][0]
    second = json.loads(json.dumps(pieces).replace('"r1"', '"r2"').replace("resp_1", "resp_2"))
    frame = read(tmp_path, form([*pieces, *second]))
    assert frame["answer"].to_list() == [TEXT] * 2 and frame["example_id"].n_unique() == 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_as_the_response_of_a_row_has_the_rows_id(tmp_path, name, form):
    row = {"uuid": "mine", "correct": True, "response": form(STREAMS[name][0])}
    (found,) = read(tmp_path, json.dumps(row)).to_dicts()
    assert (found["answer"], found["correct"]) == (TEXT, True)
    assert found["example_id"] in ("mine", "r1", "resp_1")
    assert len(found["surprisal"]) == 3


def test_whole_answers_among_pieces_stay(tmp_path):
    whole = {"id": "w", "model": "m", "created_at": "", "response": "Rome", "done": True}
    text = as_lines([whole, *ollama(), whole | {"id": "v"}])
    frame = read(tmp_path, text)
    assert frame["example_id"].to_list() == ["w", "stream-1", "v"]
    assert frame["answer"].to_list() == ["Rome", TEXT, "Rome"]


def test_rows_of_a_users_own_are_no_pieces(tmp_path):
    rows = [
        {"id": "a", "response": "Rome", "done": False},
        {"id": "b", "content": "Rome", "answer": "Rome", "stop": False},
        {"id": "c", "answer": "Rome", "logprobs": [-0.1]},
    ]
    path = write(tmp_path / "own.jsonl", rows)
    assert read_file(path).frame["example_id"].to_list() == ["a", "b", "c"]


def test_events_that_are_no_pieces_are_counted(tmp_path, caplog):
    read(tmp_path, as_events([*ollama(), {"error": "overloaded"}]))
    assert "left out 1 events of streams, which are no pieces of answers" in caplog.text
    with pytest.raises(InputError, match="its events hold no answer"):
        read(tmp_path, as_events([{"type": "ping"}]))
    failed = read(tmp_path, as_events([{"error": "overloaded"}]))
    assert failed["no_answer"].to_list() == ["request failed"]


def test_a_response_without_text_is_an_answer_that_was_not_given(tmp_path):
    assert read(tmp_path, as_events(responses()[:2]))["no_answer"].to_list() == ["empty"]
