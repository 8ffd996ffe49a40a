"""What lies between client and server: headers, clients who leave, limits of size and time."""

import asyncio
import errno
import gzip
import json
import threading
import time

import httpx2 as httpx
import pytest
from aiohttp import web

from support import load
from support.log_rows import chat
from support.running import (
    ASK,
    CHAT,
    OF_JSON,
    PROMPTLY,
    READING,
    asked_by_hand,
    by_hand,
    command,
    proxied,
    until,
)
from support.upstream import CHUNKS, Upstream
from tracecal.serving.json_bodies import HUGE, LARGE, work_on
from tracecal.serving.proxy import Proxy
from tracecal.serving.scorer import Scorer
from tracecal.serving.server import short_errors


class Answering(Upstream):
    """Answers with `answer(request, content)`, a coroutine, on every path."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer
        self.application = web.Application(client_max_size=2**30)
        self.application.router.add_route("*", "/{path:.*}", self._watched)

    async def _answered(self, request, content):
        return await self.answer(request, content)


# Headers and paths.


@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
def test_a_clients_cookies_never_reach_another_and_both_of_two_reach_their_own(client, path):
    async def answer(request, content):
        headers = [("set-cookie", "session=of-A; Path=/"), ("set-cookie", "other=of-A; Path=/")]
        return web.json_response(chat(), headers=headers)

    upstream = Answering(answer)
    with client(upstream) as http:
        first = http.post(path, json=ASK)
        http.cookies.clear()
        http.post(path, json=ASK)
    assert [one.split(";")[0] for one in first.headers.get_list("set-cookie")] == [
        "session=of-A",
        "other=of-A",
    ]
    assert not any("cookie" in headers for _, headers, _ in upstream.asked)


@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
def test_repeated_headers_keep_all_values_and_those_of_a_connection_stay_on_it(client, path):
    upstream = Upstream() if path == CHAT else Answering(_nothing)
    headers = [("x-own", "a"), ("x-own", "b"), ("proxy-authorization", "secret"), ("te", "x")]
    headers += [("connection", "keep-alive, x-named"), ("x-named", "1"), ("keep-alive", "9")]
    with client(upstream) as http:
        http.post(path, json=ASK, headers=headers)
    sent = upstream.asked[0][1]
    assert sent.getall("x-own") == ["a", "b"]
    assert not {"proxy-authorization", "x-named", "keep-alive", "te"} & {*map(str.lower, sent)}


async def _nothing(request, content):
    return web.Response()


def test_nor_do_headers_of_the_servers_connection_reach_the_client(client):
    async def answer(request, content):
        headers = {"connection": "x-named", "x-named": "1", "x-own": "2"}
        return web.json_response(chat(), headers=headers)

    with client(Answering(answer)) as http:
        answers = [http.post(CHAT, json=ASK), http.get("/")]
    assert all("x-named" not in one.headers and one.headers["x-own"] == "2" for one in answers)


@pytest.mark.parametrize("path", ["/v1/files/a%2Fb%20c?x=%26&y=a+b", "/a%2e%2e/b/../c", "//x"])
def test_a_path_stays_escaped_as_it_is(client, path):
    upstream = Answering(_nothing)
    with client(upstream) as http, by_hand(str(http.base_url), asked_by_hand(path)) as sent:
        assert sent.recv(100).startswith(b"HTTP/1.1 200")
    assert upstream.asked[0][0] == path


@pytest.mark.parametrize("path", ["/v1/chat%2Fcompletions", "/v1/chat/complet%69ons?x=%26#y"])
def test_a_percent_encoded_path_is_answered_as_the_plain_one(client, path):
    upstream = Upstream()
    body = json.dumps(ASK).encode()
    content = asked_by_hand(path, "Connection: close", body=body, method="POST")
    with client(upstream) as http, by_hand(str(http.base_url), content) as sent:
        plain = http.post(CHAT, json=ASK).json()["choices"][0]["confidence"]
        answer = json.loads(sent.makefile("rb").read().partition(b"\r\n\r\n")[2])
    assert answer["choices"][0]["confidence"] == plain
    assert plain["probability"] is not None
    assert {asked[0].partition("?")[0] for asked in upstream.asked} == {CHAT}


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat%252Fcompletions",
        "//v1/completions",
        "/v1/./responses",
        "/v1/x/%2e%2e/chat/completions",
        "/v1/chat/completions/",
        "/V1/Responses",
        *[
            CHAT + end
            for end in (
                ";x=1",
                ".",
                "...",
                "%20",
                "%00",
                "%00/x",
                ".%20",
                "\\",
                "%5C",
                "%3Fx",
                "%09",
            )
        ],
        CHAT.replace("c", "%2525252563"),
        "/v1;x=1/chat;y/completions",
        "/v1\\chat\\completions",
        "/v1/chat/x/.%2e/completions",
        "/v1/%63hat./completions",
        "/v1/%EF%BD%83hat/completions",
        "/v1/chat%EF%BC%8Fcompletions",
        "/v1/re%C2%ADsponses",
        "/v1/respon%C5%BFes",
        "//localhost/v1/responses",
    ],
)
def test_a_path_that_only_some_servers_read_as_a_scored_one_is_refused(client, path):
    upstream = Answering(_nothing)
    content = asked_by_hand(path, body=b"{}", method="POST")
    with client(upstream) as http, by_hand(str(http.base_url), content) as sent:
        answer = sent.recv(1000).decode()
    assert answer.startswith("HTTP/1.1 400")
    message = json.loads(answer.partition("\r\n\r\n")[2])["error"]["message"]
    assert f"servers read the path {path!r} differently: ask /v1/" in message
    assert not upstream.asked


@pytest.mark.parametrize(
    "path",
    [
        f"{CHAT}/chatcmpl-1",
        "/v1/responses/r1/cancel",
        "/v1/responses/input_tokens",
        "/api/v1/completions",
    ],
)
def test_a_longer_path_is_another_ones(client, path):
    upstream = Answering(_nothing)
    with client(upstream) as http:
        assert http.post(path, json={}).status_code == 200
    assert upstream.asked[0][0] == path


def test_an_http_proxy_of_the_environment_is_not_asked_for_a_server_on_this_machine(
    monkeypatch, of_top_k
):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with (
        Upstream().serving() as before,
        proxied(Scorer(of_top_k, READING, 0.3), before.url) as serving,
        httpx.Client(trust_env=False) as http,
    ):
        assert http.get(f"{serving.url}/v1/models").text == "models"


def test_methods_bodies_and_statuses_pass_through(client):
    async def answer(request, content):
        if request.method == "HEAD":
            return web.Response(headers={"content-length": "5"})
        packed = {"content-encoding": "gzip", "x-length": str(len(content))}
        return web.Response(status=207, body=gzip.compress(content), headers=packed)

    with client(Answering(answer)) as http:
        sent = b"\x00\xff" * 3_000_000
        response = http.put("/v1/files", content=sent)
        assert (response.status_code, response.content) == (207, sent)
        assert http.head("/v1/files").headers["content-length"] == "5"
        assert http.request("OPTIONS", "/v1/files").status_code == 207


# Clients who leave, and servers that hang.


async def _hang(request, content):
    if json.loads(content or b"{}").get("stream"):
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: {}\n\n")
    await asyncio.sleep(600)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
def test_a_client_that_leaves_ends_its_request_to_the_server(client, path, stream):
    upstream = Answering(_hang)
    body = json.dumps(ASK | {"stream": stream}).encode()
    with client(upstream) as http:
        for _ in range(3):
            count = len(upstream.asked)
            with by_hand(str(http.base_url), asked_by_hand(path, body=body, method="POST")):
                assert until(lambda count=count: len(upstream.asked) > count)
        assert until(lambda: upstream.left == 3)
        assert http.proxy.n_running == 0


def test_a_client_that_leaves_before_the_first_byte_ends_its_stream(client, monkeypatch):
    stream = Proxy._answer_stream

    async def left(proxy, request, *answer):
        request.transport.close()
        return await stream(proxy, request, *answer)

    monkeypatch.setattr(Proxy, "_answer_stream", left)
    upstream = Answering(_hang)
    body = json.dumps(ASK | {"stream": True}).encode()
    with (
        client(upstream) as http,
        by_hand(str(http.base_url), asked_by_hand(CHAT, body=body, method="POST")),
    ):
        assert until(lambda: upstream.left == 1)


def test_a_full_proxy_says_so_at_once_and_recovers(client):
    async def answer(request, content):
        return await (_nothing if request.path == "/v1/models" else _hang)(request, content)

    upstream = Answering(answer)
    with client(upstream, max_requests=2) as http:
        body = json.dumps(ASK).encode()
        hanging = [
            by_hand(str(http.base_url), asked_by_hand(CHAT, body=body, method="POST"))
            for _ in range(2)
        ]
        assert until(lambda: http.proxy.n_running == 2)
        before = time.monotonic()
        response = http.get("/v1/models")
        assert time.monotonic() - before < PROMPTLY
        assert response.status_code == 503
        assert "2 requests are being answered" in response.json()["error"]["message"]
        for one in hanging:
            one.close()
        assert until(lambda: http.get("/v1/models").status_code == 200)


def test_a_hundred_and_fifty_requests_are_asked_at_once(client):
    asking = []

    async def answer(request, content):
        asking.append(1)
        while len(asking) < 150:
            await asyncio.sleep(0.01)
        return web.Response()

    with client(Answering(answer)) as http:
        sent = [by_hand(str(http.base_url), asked_by_hand("/v1/models")) for _ in range(150)]
        assert all(one.recv(100).startswith(b"HTTP/1.1 200") for one in sent)
        for one in sent:
            one.close()


@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
def test_a_server_that_is_silent_times_out(client, path):
    with client(Answering(_hang), timeout=0.3) as http:
        response = http.post(path, json=ASK)
        assert response.status_code == 504
        assert "the upstream server failed" in response.json()["error"]["message"]
        streamed = http.post(CHAT, json=ASK | {"stream": True}).text
    assert streamed.count('"error":{') == 1


@pytest.mark.slow
def test_a_proxy_that_is_stopped_ends_before_it_is_killed_and_answers_whoever_waits(
    content, tmp_path
):
    """Docker kills after 10 s; its client waits for an answer, for more of a stream or a file."""
    upstream, bodies = Answering(_hang), (ASK, ASK | {"stream": True}, ASK | {"stream": True})
    requests = [
        asked_by_hand(path, body=json.dumps(body).encode(), method="POST")
        for path, body in zip((CHAT, CHAT, "/v1/embeddings"), bodies, strict=True)
    ]
    with (
        upstream.serving() as before,
        command(content, tmp_path, "--upstream", before.url) as (process, address, log),
    ):
        waiting = [by_hand(address, request) for request in requests]
        assert until(lambda: len(upstream.asked) == 3)
        start = time.monotonic()
        process.terminate()
        whole, stream, cut = (one.makefile("rb").read().decode() for one in waiting)
        assert process.wait(60) == 0
        assert time.monotonic() - start < 10
    assert whole.startswith("HTTP/1.1 502") and "had not answered when the proxy was" in whole
    assert "data: {}" in stream and "had not answered when the proxy was stopped" in stream
    assert stream.count('"error":{') == 1 and cut.endswith("data: {}\n\n\r\n")
    assert "Traceback" not in log.read_text()


def test_a_request_to_a_stopped_proxy_fails_at_once(client):
    with client(Upstream()) as http:
        http.proxy.server.stop()
        found = http.post(CHAT, json=ASK)
    assert found.status_code == 502
    assert "had not answered when the proxy was stopped" in found.json()["error"]["message"]


def test_a_request_that_may_have_been_worked_on_is_not_sent_again(client):
    async def answer(request, content):
        if len(upstream.asked) == 2:
            request.transport.abort()
        return web.json_response(chat())

    upstream = Answering(answer)
    with client(upstream) as http:
        assert [http.post(CHAT, json=ASK).status_code for _ in range(3)] == [200, 502, 200]
    assert len(upstream.asked) == 3


STRAY = [
    b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nanother",
    b"HTTP/1.1 200 OK\r\nContent-Len",
]


@pytest.mark.parametrize("stray", STRAY, ids=["stale", "second", "begun"])
@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
@pytest.mark.parametrize("comes", [0.05, 0.3], ids=["before", "during"])
def test_what_a_server_writes_after_an_answer_reaches_no_other_client(client, comes, path, stray):
    """It comes before the next request is sent, or while that one waits for its answer."""

    async def answer(request, content):
        if len(upstream.asked) > 1:
            await asyncio.sleep(0.4)
        else:
            asyncio.get_running_loop().call_later(comes, request.transport.write, stray)
        return web.json_response(chat())

    upstream = Answering(answer)
    with client(upstream) as http:
        first, _, second = http.post(path, json=ASK), time.sleep(0.15), http.post(path, json=ASK)
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()


def test_a_connection_that_the_server_closed_meanwhile_is_not_used(client):
    async def answer(request, content):
        loop = asyncio.get_running_loop()
        loop.call_later(0.05, request.transport.close)
        loop.call_later(0.2, closed.set)
        return web.json_response(chat())

    upstream, closed = Answering(answer), threading.Event()
    with client(upstream) as http:
        for _ in range(5):
            assert http.post(CHAT, json=ASK).status_code == 200
            assert closed.wait(PROMPTLY)
            closed.clear()
    assert len(upstream.asked) == 5


@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
@pytest.mark.parametrize("status", [b"101 Switching Protocols", b"199 Odd", b"042 Odd", b"700 Odd"])
def test_a_status_that_ends_no_answer_is_an_error(client, path, status):
    async def answer(request, content):
        request.transport.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
        await asyncio.sleep(0.2)
        request.transport.close()
        return web.Response()

    with client(Answering(answer), timeout=2) as http:
        assert http.post(path, json=ASK).status_code in (502, 504)


def test_settings_reach_the_server_in_their_own_digits(client):
    seed = b'18446744073709551617, "x": [1E400, 1.10000000000000000000001]'
    content = b'{"model": "m", "messages": [], "top_logprobs": 0, "seed": ' + seed + b"}"
    upstream = Upstream()
    with client(upstream) as http:
        http.post(CHAT, content=content, headers=OF_JSON)
        http.post(CHAT, content=content.replace(b"[1E400, ", b"["), headers=OF_JSON)
    assert seed in upstream.asked[0][2]  # of a number beyond ours nothing is added
    sent = upstream.asked[1][2]
    assert b'"seed":18446744073709551617' in sent and b"1.10000000000000000000001" in sent
    assert json.loads(sent)["top_logprobs"] == 20


LONG = ["18446744073709551616", "-9223372036854775809", "1" * 200, "1.10000000000000000000001"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("number", [*LONG, "18446744073709551615", "-9223372036854775808"])
def test_numbers_of_an_answer_reach_the_client_in_their_own_digits(client, number, stream):
    whole = json.dumps(CHUNKS[2] if stream else chat())
    whole = whole.replace("{", f'{{"n": {number}, "x": [{number}], ', 1)
    whole = whole.replace('"finish_reason"', f'"own": {number}, "finish_reason"')

    async def answer(request, content):
        if stream:
            text = f"data: {json.dumps(CHUNKS[1])}\n\ndata: {whole}\n\ndata: [DONE]\n\n"
            return web.Response(text=text, content_type="text/event-stream")
        return web.Response(text=whole, content_type="application/json")

    with client(Answering(answer)) as http:
        found = http.post(CHAT, json=ASK | {"stream": stream}).text
    assert f'"n":{number},"x":[{number}],' in found and f'"own":{number},' in found
    assert found.count('"probability":0.') == 1 + stream and "-0.25" not in found


MANY = b'{"model": "m", "messages": [], %s}'
MOST = range(300)


@pytest.mark.slow
def test_a_request_of_many_values_lets_no_other_wait_for_a_second(content, tmp_path):
    """One that is refused, and one of nearly as many as are read."""
    names = [b'"%x":0' % number for number in range(6_000_000)]
    too_many, most = (MANY % b",".join(names[:number]) for number in (6_000_000, 245_000))
    with (
        Upstream().serving() as before,
        command(content, tmp_path, "--upstream", before.url) as (_, address, _),
    ):
        waits, statuses = [], []

        def ask():
            for body in (too_many, most, most):
                found = httpx.post(address + CHAT, content=body, headers=OF_JSON, timeout=60)
                statuses.append(found.status_code)

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        with httpx.Client(base_url=address, timeout=60) as http:
            while asking.is_alive():
                start = time.monotonic()
                assert http.get("/v1/models").status_code == 200
                waits.append(time.monotonic() - start)
    assert statuses == [413, 200, 200]
    assert len(waits) > 10 and max(waits) < 1


def test_a_large_body_waits_for_no_huge_one():
    is_done = threading.Event()

    async def both():
        huge = work_on(HUGE, is_done.wait, PROMPTLY)
        return await asyncio.gather(huge, work_on(LARGE, is_done.set))

    assert asyncio.run(both()) == [True, None]


@pytest.mark.parametrize("stream", [False, True])
def test_many_choices_are_scored_beside_the_event_loop(client, monkeypatch, stream):
    threads, confidence = set(), Scorer.confidence

    def noted(*args):
        threads.add(threading.current_thread().name.rpartition("_")[0])
        return confidence(*args)

    async def answer(request, content):
        chunk = CHUNKS[2] if stream else chat()
        whole = json.dumps(
            {**chunk, "choices": [{**chunk["choices"][0], "index": n} for n in MOST]}
        )
        if stream:
            text = f"data: {whole}\n\ndata: [DONE]\n\n"
            return web.Response(text=text, content_type="text/event-stream")
        return web.Response(text=whole, content_type="application/json")

    monkeypatch.setattr(Scorer, "confidence", noted)
    with client(Answering(answer)) as http:
        assert http.post(CHAT, json=ASK | {"stream": stream, "n": len(MOST)}).status_code == 200
    assert threads == {"large bodies"}


def test_slow_headers_and_slow_bodies_time_out(client):
    with client(Answering(_nothing), client_timeout=0.4) as http:
        url = str(http.base_url)
        with by_hand(url, b"POST / HTTP/1.1\r\nHost: x\r\n") as slow:
            slow.settimeout(PROMPTLY)
            assert slow.recv(100) == b""
        for path, method in ((CHAT, "POST"), ("/v1/embeddings", "POST"), ("/v1/files", "PUT")):
            whole = asked_by_hand(path, body=b"{" * 100, method=method)
            with by_hand(url, whole[:-50]) as slow:
                slow.settimeout(PROMPTLY)
                assert slow.recv(100).startswith(b"HTTP/1.1 408")
        assert until(lambda: http.proxy.n_running == 0)


# Sizes.


def test_a_request_that_is_too_large_is_refused(client):
    upstream = Upstream()
    with client(upstream, max_body=0.01) as http:
        large = json.dumps(ASK | {"x": "y" * 20_000}).encode()
        contents = (large, _pieces(large))
        responses = [http.post(CHAT, content=content, headers=OF_JSON) for content in contents]
        assert [one.status_code for one in responses] == [413] * 2
        for response in responses:
            assert "larger than 0.01 MB (--max-body)" in response.json()["error"]["message"]
    assert not upstream.asked


def _pieces(content):
    yield from (content[place : place + 1000] for place in range(0, len(content), 1000))


def test_a_compressed_request_is_refused(client):
    upstream = Upstream()
    with client(upstream) as http:
        content, headers = gzip.compress(json.dumps(ASK).encode()), {"content-encoding": "gzip"}
        response = http.post(CHAT, content=content, headers=OF_JSON | headers)
    assert response.status_code == 400
    assert "it is compressed (Content-Encoding)" in response.json()["error"]["message"]
    assert not upstream.asked


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_an_answer_compressed_in_spite_of_identity_is_an_error(client, encoding, stream):
    kind = "text/event-stream" if stream else "application/json"

    async def answer(request, _):
        assert request.headers["accept-encoding"] == "identity"
        headers = {"content-encoding": encoding, "content-type": kind}
        return web.Response(body=gzip.compress(json.dumps(chat()).encode()), headers=headers)

    with client(Answering(answer)) as http:
        response = http.post(CHAT, json=ASK | {"stream": stream})
    assert response.status_code == 502
    assert "it is compressed (Content-Encoding)" in response.json()["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_is_too_large_is_an_error(client, stream):
    kind = "text/event-stream" if stream else "application/json"

    async def answer(request, _):
        return web.Response(body=b" " * 1_500_000, content_type=kind)

    with client(Answering(answer), max_body=1) as http:
        response = http.post(CHAT, json=ASK | {"stream": stream})
    assert response.status_code == (200 if stream else 502)
    assert "larger than 1 MB (--max-body)" in response.text


def test_connections_without_a_free_file_handle_are_one_line_and_no_traceback(caplog):
    async def fail_often():
        application = web.Application()
        application.cleanup_ctx.append(short_errors)
        runner = web.AppRunner(application)
        await runner.setup()
        loop = asyncio.get_running_loop()
        for _ in range(1000):
            error = OSError(errno.EMFILE, "Too many open files")
            loop.call_exception_handler({"message": "socket.accept()", "exception": error})
            loop.call_exception_handler({"message": "failed", "exception": KeyError("sk-secret")})
        await runner.cleanup()

    asyncio.run(fail_often())
    assert caplog.messages == [
        "no file handle is free for a new connection: raise 'ulimit -n'",
        "failed (KeyError)",
    ]
    assert "Traceback" not in caplog.text


# All of it at once; `python -m support.load` does it for minutes.


@pytest.mark.slow
def test_under_load_no_living_client_loses_its_request_and_nothing_crosses(tmp_path):
    result, (before, after), memory, log = load.run(40, 4, tmp_path)
    assert result.lost == []
    assert result.crossed == []
    assert result.happened["answered"] > 50
    assert result.happened["left"] > 5
    assert result.answering == 0
    assert after <= before
    assert memory[-1] < memory[0] + 100
    assert "Traceback" not in log


def test_a_request_that_is_none_is_refused_and_not_quoted_in_the_log(client, caplog):
    with client(Upstream()) as http:
        wrong = b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization \x01: sk-very-secret\r\n\r\n"
        with by_hand(str(http.base_url), wrong) as sent:
            assert b" 400 Bad Request" in sent.recv(100)
    assert "sk-very-secret" not in caplog.text
    assert "Traceback" not in caplog.text
