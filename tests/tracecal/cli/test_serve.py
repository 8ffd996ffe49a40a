"""The proxy: confidence in every answer, everything else as the server has it."""

import json
import socket
from pathlib import Path

import httpx2 as httpx
import pytest

from support.log_rows import TWO, batch, chat, token, write
from support.running import ASK, CHAT, KEY, OF_JSON, READING, command, events, proxied
from support.upstream import ANSWERS, CHUNKS, Upstream
from tracecal.answers.answers import read_file
from tracecal.calibrator.scoring import score_answers
from tracecal.cli.main import main
from tracecal.serving.scorer import Scorer

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def expected(of_top_k, tmp_path):
    """The confidence that scoring the same answer in a file gives."""
    answers = read_file(write(tmp_path / "a.jsonl", [batch(chat())]), READING).frame
    return score_answers(answers, of_top_k, 0.3).row(0, named=True)


def same(confidence, expected):
    for name in ("probability", "lower", "upper"):
        assert confidence[name] == pytest.approx(expected[name], abs=1e-12)
    assert confidence["keep"] is expected["keep"]
    assert confidence["error_rate"] == 0.3
    assert confidence["reason"] is expected["reason"] is None
    return True


def test_an_answer_gets_its_confidence_and_loses_what_was_not_asked_for(client, expected):
    upstream = Upstream()
    with client(upstream) as http:
        response = http.post(CHAT, json=ASK, headers={"authorization": KEY})
    body = response.json()
    assert same(body["choices"][0].pop("confidence"), expected)
    whole = chat()
    whole["choices"][0]["logprobs"] = None
    assert body == whole
    assert response.headers["x-request-id"] == "r1"
    _, headers, sent = upstream.asked[0]
    assert headers["authorization"] == KEY
    assert json.loads(sent) == ASK | {"logprobs": True, "top_logprobs": 20}


def test_a_client_that_wants_log_probabilities_gets_as_many_as_it_asked_for(client):
    with client(Upstream()) as http:
        asked = ASK | {"logprobs": True, "top_logprobs": 1}
        choice = http.post(CHAT, json=asked).json()["choices"][0]
    tokens = choice["logprobs"]["content"]
    assert [len(one["top_logprobs"]) for one in tokens] == [1, 1]
    assert choice["confidence"]["probability"] is not None


def test_a_streamed_answer_gets_the_same_confidence_as_it_ends(client, expected):
    with client(Upstream()) as http:
        response = http.post(CHAT, json=ASK | {"stream": True})
    assert response.headers["content-type"].startswith("text/event-stream")
    assert ": a comment" in response.text
    chunks = events(response)
    assert len(chunks) == len(CHUNKS)
    assert same(chunks[2]["choices"][0].pop("confidence"), expected)
    told = [one["choices"][0] for one in chunks[:3]]
    assert all("confidence" not in one and one.get("logprobs") is None for one in told)
    assert "".join(one["delta"].get("content", "") for one in told) == "51"
    assert chunks[3] == CHUNKS[3]


def test_texts_with_other_line_ends_survive_streaming(client, monkeypatch):
    odd = "a\u2028b\x85c"
    chunk = {"choices": [{"index": 0, "delta": {"content": odd}, "finish_reason": None}]}
    monkeypatch.setitem(ANSWERS, CHAT, (None, [chunk]))
    with client(Upstream()) as http:
        response = http.post(CHAT, json=ASK | {"stream": True})
    assert events(response)[0]["choices"][0]["delta"]["content"] == odd


OLD = {"model": "m", "prompt": "how many?"}
NEW = {"model": "m", "input": "how many?"}
TOLD = "message.output_text.logprobs"


def told(answer):
    """Whatever a whole answer says of log-probabilities."""
    for choice in answer.get("choices", ()):
        yield choice.get("logprobs")
    for item in answer.get("output", ()):
        for part in item["content"]:
            yield part["logprobs"] or None


@pytest.mark.parametrize(
    ("path", "asked", "sent"),
    [
        ("/v1/completions", OLD, {"logprobs": 20}),
        ("/v1/completions", OLD | {"logprobs": 30}, {"logprobs": 30}),
        ("/v1/responses", NEW, {"include": [TOLD], "top_logprobs": 20}),
        ("/v1/responses", NEW | {"include": [TOLD]}, {"include": [TOLD], "top_logprobs": 20}),
        ("/v1/responses", NEW | {"include": ["x"]}, {"include": ["x", TOLD], "top_logprobs": 20}),
    ],
)
def test_the_other_forms_get_the_same_confidence(client, expected, path, asked, sent):
    upstream = Upstream()
    with client(upstream) as http:
        whole = http.post(path, json=asked).json()
        streamed = http.post(path, json=asked | {"stream": True})
    assert json.loads(upstream.asked[0][2]) == asked | sent
    *_, last = events(streamed)
    for answer in (whole, last.get("response", last)):
        holder = answer["choices"][0] if "choices" in answer else answer
        assert same(holder["confidence"], expected)
        shown = asked.get("logprobs") is not None or TOLD in asked.get("include", ())
        assert [one is not None for one in told(answer)] == [shown]
    assert "confidence" not in json.dumps(events(streamed)[:-1])
    assert ("-0.25" in json.dumps(events(streamed)[:-1])) == shown


def test_what_other_forms_show_is_as_much_as_was_asked_for(client):
    with client(Upstream()) as http:
        old = http.post("/v1/completions", json=OLD | {"logprobs": 1}).json()
        new = http.post("/v1/responses", json=NEW | {"include": [TOLD], "top_logprobs": 1}).json()
    assert old["choices"][0]["logprobs"]["top_logprobs"] == [{"51": -0.25}, {"<|im_end|>": -0.01}]
    tokens = new["output"][0]["content"][0]["logprobs"]
    assert [len(one["top_logprobs"]) for one in tokens] == [1, 1]


def test_an_echoed_prompt_is_no_part_of_the_trace(client):
    with client(Upstream()) as http:
        choice = http.post("/v1/completions", json=OLD | {"echo": True}).json()["choices"][0]
    assert choice["confidence"]["probability"] is None
    assert "with 'echo'" in choice["confidence"]["reason"]


@pytest.mark.parametrize("path", ANSWERS)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_pass_through(client, stream, path):
    with client(Upstream(status=401)) as http:
        response = http.post(path, json=ASK | {"stream": stream})
    assert response.status_code == 401
    assert response.json() == {"error": {"message": "wrong key"}}
    assert response.headers["x-request-id"] == "r1"


@pytest.mark.parametrize("refusal", [400, 422])
@pytest.mark.parametrize("stream", [False, True])
def test_a_server_that_refuses_the_log_probabilities_is_asked_without(client, stream, refusal):
    class Refusing(Upstream):
        async def _answered(self, request, content):
            self.status = refusal if "logprobs" in json.loads(content) else 200
            return await super()._answered(request, content)

    upstream = Refusing(chat("null"))
    asked = ASK | {"stream": stream}
    with client(upstream) as http:
        response = http.post(CHAT, json=asked)
    assert response.status_code == 200
    assert [json.loads(content) for *_, content in upstream.asked][1] == asked
    if not stream:
        confidence = response.json()["choices"][0]["confidence"]
        assert confidence["reason"] == "no log-probabilities are given"


def test_other_paths_pass_through(client):
    upstream = Upstream()
    with client(upstream) as http:
        response = http.get("/v1/models?limit=3", headers={"x-own": "1"})
        missing = http.get("/v1/nothing")
    assert (response.text, response.headers["x-kind"]) == ("models", "list")
    assert upstream.asked[0][0] == "/v1/models?limit=3"
    assert upstream.asked[0][1]["x-own"] == "1"
    assert missing.status_code == 404


def test_what_is_no_json_is_the_servers_to_refuse(client):
    class Refusing(Upstream):
        async def _answered(self, request, content):
            self.status = 400
            return await super()._answered(request, content)

    with client(Refusing()) as http:
        assert http.post(CHAT, content=b"{", headers=OF_JSON).status_code == 400


@pytest.mark.parametrize(
    ("answer", "reading", "reason"),
    [
        (chat("null"), READING, "no log-probabilities are given"),
        (
            chat([token("51", -0.25), token("<|im_end|>", -0.01)]),
            READING,
            "no top log-probabilities are given",
        ),
        (chat() | {"model": "other"}, READING, "fitted on answers of 'm'"),
        (chat([token("51", -0.25, TWO)]), READING, "leave out the stop token"),
        (chat([token("51", 3.0, TWO)]), READING, "above 0"),
    ],
)
def test_what_has_no_confidence_says_why(client, answer, reading, reason):
    with client(Upstream(answer), reading=reading) as http:
        choice = http.post(CHAT, json=ASK).json()["choices"][0]
    assert choice["confidence"]["probability"] is None
    assert reason in choice["confidence"]["reason"]
    assert choice["message"] == answer["choices"][0]["message"]


def test_a_server_that_is_not_there_is_one_sentence(of_top_k):
    with proxied(Scorer(of_top_k, READING), "http://127.0.0.1:9") as serving:
        response = httpx.post(serving.url + CHAT, json=ASK)
    assert response.status_code == 502
    failed = "the upstream server failed (ClientConnectorError)"
    assert response.json()["error"]["message"] == failed


def test_the_command_serves_on_loopback_and_writes_no_key(content, tmp_path):
    upstream = Upstream()
    with (
        upstream.serving() as before,
        command(content, tmp_path, "--upstream", before.url) as (_, address, log),
    ):
        url, secret = address + CHAT, {"authorization": f"Bearer {KEY}"}
        response = httpx.post(url + f"?key={KEY}", json=ASK, headers=secret, timeout=60)
        streamed = httpx.post(url, json=ASK | {"stream": True}, headers=secret, timeout=60)
    assert response.json()["choices"][0]["confidence"]["probability"] is not None
    assert any("confidence" in choice for one in events(streamed) for choice in one["choices"])
    assert upstream.asked[0][1]["authorization"] == f"Bearer {KEY}"
    written = log.read_text()
    assert f"{address} answers for" in written
    assert KEY not in written
    assert "Traceback" not in written


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--upstream", "notaurl"], "upstream: is not an address such as http://localhost:8000"),
        (["--upstream", "http://a:{key}@localhost:1"], "must not hold a password"),
        (["--upstream", "http://localhost:1/v1?key={key}"], "must not hold a password or query"),
        (["--upstream", "http://localhost:{key}"], "is not an address"),
        (["--upstream", "http://a b"], "is not an address"),
        (["--upstream", "localhost/?key={key}"], "must not hold a password or query"),
        *[
            (["--upstream", "http://localhost:1", f"--{name}", value], name.replace("-", "_"))
            for name, value in [
                ("max-body", "inf"),
                ("max-body", "1e30"),
                ("top", "1e30"),
                ("max-requests", "1e12"),
                ("timeout", "1e300"),
                ("client-timeout", "nan"),
                ("answers-per-alarm", "1e300"),
            ]
        ],
        (["--upstream", "http://localhost:99999"], "is not an address"),
        (["--upstream", "http://localhost:1", "--error-rate", "0.123"], "not tested for an error"),
        (["--upstream", "http://localhost:1", "--max-requests", "0"], "max_requests"),
        (["--upstream", "http://localhost:1", "--port", "{taken}"], "cannot listen on 127.0.0.1"),
    ],
)
def test_wrong_options_are_refused_before_it_starts(content, tmp_path, caplog, options, reason):
    path = tmp_path / "C.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        options = [option.format(taken=taken, key=KEY) for option in options]
        port = [] if "--port" in options else ["--port", "0"]
        assert main(["serve", "--calibrator", str(path), *port, *options]) == 1
    assert reason in caplog.text
    assert KEY not in caplog.text
