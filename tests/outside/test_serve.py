"""The proxy: confidence in every answer, everything else as the server has it."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2 as httpx
import pytest
import uvicorn
from starlette.testclient import TestClient

from logs.rows import TWO, batch, chat, token, write
from outside.upstream import ANSWERS, CHUNKS, Upstream
from tracecal.logs.options import Reading
from tracecal.logs.read import read_answers
from tracecal.outside.confidence import Scorer
from tracecal.outside.score import score_answers
from tracecal.outside.serve import proxy

REPOSITORY = Path(__file__).resolve().parents[2]
READING = Reading(vocabulary=1000)
KEY = "sk-very-secret"
ASK = {"model": "m", "messages": [{"role": "user", "content": "how many?"}]}


@pytest.fixture
def client(calibrator):
    """A client of a proxy before an upstream."""

    def connect(upstream, **more):
        transport = httpx.ASGITransport(upstream.application)
        scorer = Scorer(calibrator, more.pop("reading", READING), 0.3)
        return TestClient(proxy("http://upstream/v1", scorer, transport=transport, **more))

    return connect


@pytest.fixture
def expected(calibrator, tmp_path):
    """The confidence that scoring the same answer in a file gives."""
    answers = read_answers(write(tmp_path / "a.jsonl", [batch(chat())]), READING).frame
    return score_answers(answers, calibrator, 0.3).row(0, named=True)


def same(confidence, expected):
    for name in ("probability", "lower", "upper"):
        assert confidence[name] == pytest.approx(expected[name], abs=1e-12)
    assert confidence["keep"] is expected["keep"]
    assert confidence["error_rate"] == 0.3
    assert confidence["reason"] is None
    return True


def test_an_answer_gets_its_confidence_and_loses_what_was_not_asked_for(client, expected):
    upstream = Upstream()
    with client(upstream) as http:
        response = http.post("/v1/chat/completions", json=ASK, headers={"authorization": KEY})
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
        choice = http.post("/v1/chat/completions", json=asked).json()["choices"][0]
    tokens = choice["logprobs"]["content"]
    assert [len(one["top_logprobs"]) for one in tokens] == [1, 1]
    assert choice["confidence"]["probability"] is not None


def events(response):
    lines = [line for line in response.text.split("\n") if line.startswith("data:")]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data:")) for line in lines[:-1]]


def test_a_streamed_answer_gets_the_same_confidence_as_it_ends(client, expected):
    with client(Upstream()) as http:
        response = http.post("/v1/chat/completions", json=ASK | {"stream": True})
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
    monkeypatch.setitem(ANSWERS, "/v1/chat/completions", (None, [chunk]))
    with client(Upstream()) as http:
        response = http.post("/v1/chat/completions", json=ASK | {"stream": True})
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


@pytest.mark.parametrize("stream", [False, True])
def test_a_server_that_refuses_the_log_probabilities_is_asked_without(client, stream):
    class Refusing(Upstream):
        async def _answered(self, request):
            self.status = 400 if "logprobs" in await request.json() else 200
            return await super()._answered(request)

    upstream = Refusing(chat("null"))
    asked = ASK | {"stream": stream}
    with client(upstream) as http:
        response = http.post("/v1/chat/completions", json=asked)
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
    assert upstream.asked[0][2] == "limit=3"
    assert upstream.asked[0][1]["x-own"] == "1"
    assert missing.status_code == 404


def test_what_is_no_json_is_the_servers_to_refuse(client):
    class Refusing(Upstream):
        async def _answered(self, request):
            self.status = 400
            return await super()._answered(request)

    with client(Refusing()) as http:
        assert http.post("/v1/chat/completions", content=b"{").status_code == 400


@pytest.mark.parametrize(
    ("answer", "reading", "reason"),
    [
        (chat("null"), READING, "no log-probabilities are given"),
        (
            chat([token("51", -0.25), token("<|im_end|>", -0.01)]),
            READING,
            "no top log-probabilities are given",
        ),
        (chat(), Reading(), "entropies need the vocabulary's size"),
        (chat() | {"model": "other"}, READING, "fitted on answers of 'm'"),
        (chat([token("51", -0.25, TWO)]), READING, "leave out the stop token"),
        (chat([token("51", 3.0, TWO)]), READING, "above 0"),
    ],
)
def test_what_has_no_confidence_says_why(client, answer, reading, reason):
    with client(Upstream(answer), reading=reading) as http:
        choice = http.post("/v1/chat/completions", json=ASK).json()["choices"][0]
    assert choice["confidence"]["probability"] is None
    assert reason in choice["confidence"]["reason"]
    assert choice["message"] == answer["choices"][0]["message"]


def test_a_server_that_is_not_there_is_one_sentence(calibrator):
    with TestClient(proxy("http://127.0.0.1:9", Scorer(calibrator, READING))) as http:
        response = http.post("/v1/chat/completions", json=ASK)
    assert response.status_code == 502
    assert response.json()["error"]["message"] == "the upstream server failed (ConnectError)"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answered(url, **request):
    """The response of a server that may still be starting."""
    for _ in range(150):
        try:
            return httpx.post(url, timeout=30, **request)
        except httpx.ConnectError:
            time.sleep(0.2)
    raise AssertionError(f"nothing answers at {url}")


@pytest.fixture
def loopback():
    """An upstream on a port of this machine."""
    upstream, port = Upstream(), free_port()
    server = uvicorn.Server(uvicorn.Config(upstream.application, port=port, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    yield upstream, f"http://127.0.0.1:{port}/v1"
    server.should_exit = True
    thread.join()


def test_the_command_serves_on_loopback_and_writes_no_key(loopback, content, tmp_path):
    upstream, address = loopback
    path, port = tmp_path / "C.json", free_port()
    path.write_text(json.dumps(content), encoding="utf-8")
    arguments = ["serve", "--upstream", address, "--calibrator", str(path), "--port", str(port)]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "workflow_scripts")}
    with (tmp_path / "log").open("w") as log:
        serving = subprocess.Popen(
            [sys.executable, "-m", "tracecal.outside.command", *arguments],
            stdout=log,
            stderr=log,
            env=environment,
        )
        try:
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            secret = {"authorization": f"Bearer {KEY}"}
            response = answered(url + f"?key={KEY}", json=ASK, headers=secret)
            streamed = answered(url, json=ASK | {"stream": True}, headers=secret)
        finally:
            serving.terminate()
            serving.wait(30)
    assert response.json()["choices"][0]["confidence"]["probability"] is not None
    assert any("confidence" in choice for one in events(streamed) for choice in one["choices"])
    assert upstream.asked[0][1]["authorization"] == f"Bearer {KEY}"
    written = (tmp_path / "log").read_text()
    assert f"http://127.0.0.1:{port} answers for" in written
    assert KEY not in written
