"""Two servers behind the proxy: what the small one's answer is not kept for is put to the large."""

import asyncio
import json
import re
import shlex
import sqlite3
from contextlib import closing
from dataclasses import replace

import httpx2 as httpx
import pytest
from aiohttp import web

from support import load
from support.log_rows import END, TWO, chat, token
from support.running import (
    ASK,
    CHAT,
    KEY,
    READING,
    REPOSITORY,
    asked_by_hand,
    by_hand,
    command,
    proxied,
    until,
)
from support.upstream import Upstream, piece
from tests.tracecal.serving.proxy.test_serve_watch import samples
from tracecal.calibrator.catalogue import MEAN_OF_THREE as DEFAULT
from tracecal.calibrator.schema import CascadeControl, CascadeThreshold
from tracecal.cli.main import COMMANDS, main
from tracecal.io.files import write_json
from tracecal.serving.proxy.scorer import Scorer
from tracecal.serving.proxy.settings import ProxySettings
from tracecal.serving.proxy.watcher import Watcher

SURE = [token("51", -0.25, TWO), token("<|im_end|>", -0.01, END)]
UNSURE = [token("a", -1.5, [("a", -1.5), ("b", -1.6)])] * 4
DOUBTED = [*UNSURE, token("<|im_end|>", -0.01, END)]
LARGE_KEY = "sk-of-the-large-one"
COUNTED = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}


def streamed(tokens, text, model="m"):
    """The chunks of an answer, a token each."""
    texts = list(text) + [""] * (len(tokens) - len(text)) if len(text) > 2 else [text, ""]
    ends = [None] * (len(tokens) - 1) + ["stop"]
    told = [piece(*one) for one in zip(texts, ([one] for one in tokens), ends, strict=True)]
    return [one | {"model": model} for one in told]


class Model(Upstream):
    """Answers with `tokens`, that spell `text`; a `trouble` it may have."""

    def __init__(self, tokens, text, model="m", trouble=None, pause=0.0):
        super().__init__()
        self.whole = chat(tokens, text) | {"model": model, "usage": COUNTED}
        self.chunks = streamed(tokens, text, model)
        self.trouble, self.pause, self.headers = trouble, pause, {"x-from": model}
        self.headers["set-cookie"] = f"own={model}"

    async def _answered(self, request, content):
        if self.trouble == "hangs":
            await asyncio.sleep(600)
        if self.trouble == "refuses":
            return web.json_response({"error": {"message": f"wrong key {LARGE_KEY}"}}, status=401)
        asked = json.loads(content)
        if self.trouble == "wrong JSON":
            kind = "text/event-stream" if asked.get("stream") else "text/html"
            return web.Response(text="{oh no", headers={"content-type": kind})
        if asked.get("stream"):
            return await self._streamed(request, asked)
        if self.trouble == "no answer":
            return web.json_response({"object": "nothing"})
        if self.trouble == "deep":
            return web.Response(
                body=json.dumps(self.whole | {"x": 0}).replace(" 0}", "[" * 500 + "]" * 500 + "}"),
                content_type="application/json",
            )
        if self.trouble == "stalls":
            response = web.StreamResponse(headers={"content-type": "application/json"})
            await response.prepare(request)
            while True:
                await response.write(b" ")
                await asyncio.sleep(0.05)
        return web.json_response(self.whole, headers=self.headers)

    async def _streamed(self, request, asked):
        response = web.StreamResponse(headers=self.headers | {"content-type": "text/event-stream"})
        await response.prepare(request)
        if self.trouble == "no answer":
            await response.write(b'data: {"error": {"message": "full"}}\n\n')
            return response
        while self.trouble == "stalls":  # keeping the connection alive
            await response.write(b": a comment\n\n")
            await asyncio.sleep(0.05)
        if self.trouble == "deep":
            await response.write(b'data: {"x": ' + b"[" * 500 + b"]" * 500 + b"}\n\n")
            return response
        for place, chunk in enumerate(self.chunks):
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
            await asyncio.sleep(self.pause)
            if place == 0 and self.trouble == "breaks midway":
                request.transport.abort()
        if (asked.get("stream_options") or {}).get("include_usage"):
            await response.write(f"data: {json.dumps(counted(self.whole['model']))}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response


def counted(model):
    return {"object": "chat.completion.chunk", "model": model, "choices": [], "usage": COUNTED}


def small(tokens=DOUBTED, text="aaaa", **more):
    return Model(tokens, text, **more)


def large(**more):
    return Model([token("72", -0.1), token("", -0.1)], "72", **{"model": "large"} | more)


TROUBLES = ["down", "hangs", "refuses", "wrong JSON", "no answer"]


def failing(trouble, of=large):
    return None if trouble == "down" else of(trouble=trouble)


@pytest.fixture
def both(of_top_k, monkeypatch):
    """A client of a proxy before two servers."""
    monkeypatch.setenv("TRACECAL_ESCALATE_KEY", LARGE_KEY)

    class Both:
        def __init__(self, one, other, scorer=None, **settings):
            self.one, self.other, self.settings = one.serving(), other and other.serving(), settings
            self.scorer = scorer or Scorer(of_top_k, READING, 0.3)

        def __enter__(self):
            first = self.one.__enter__()
            second = self.other.__enter__().url if self.other else "http://127.0.0.1:9"
            options = {"escalate": second + "/v1", "escalate_model": "large"} | self.settings
            self.serving = proxied(self.scorer, first.url, **options)
            self.http = httpx.Client(base_url=self.serving.__enter__().url, timeout=30)
            self.http.proxy = self.serving.proxy
            return self.http

        def __exit__(self, *error):
            self.http.close()
            for one in filter(None, (self.serving, self.one, self.other)):
                one.__exit__(*error)

    return Both


def chunks(response):
    lines = [line for line in response.text.split("\n") if line.startswith("data: {")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def text_of(told, index=0):
    return "".join(
        choice["delta"].get("content") or ""
        for one in told
        for choice in one.get("choices", ())
        if choice["index"] == index
    )


def confidence_of(told, index=0):
    """The confidence of a streamed choice, in the chunk and in its delta."""
    (found,) = [
        choice
        for one in told
        for choice in one.get("choices", ())
        if choice["index"] == index and "confidence" in choice
    ]
    assert found["delta"]["confidence"] == found["confidence"]
    return found["confidence"]


# What is asked of whom.


def test_an_answer_that_is_kept_is_not_escalated(both):
    other = large()
    with both(small(SURE, "51"), other) as http:
        whole = http.post(CHAT, json=ASK).json()["choices"][0]
        told = chunks(http.post(CHAT, json=ASK | {"stream": True}))
        assert http.proxy.escalation.outcomes == {"kept": 2}
    assert (whole["message"]["content"], text_of(told)) == ("51", "51")
    for confidence in (whole["confidence"], confidence_of(told)):
        assert confidence["keep"] is True and confidence["escalated"] is False
        probability = {"probability": confidence["probability"]}
        spent = confidence["escalation"]["small"]
        assert confidence["escalation"] == {"why": None, "small": spent, "large": None}
        assert (
            spent.items() >= (probability | {"generated_tokens": spent["generated_tokens"]}).items()
        )
    assert whole["confidence"]["escalation"]["small"]["prompt_tokens"] == 7
    assert confidence_of(told)["escalation"]["small"]["generated_tokens"] == 2
    assert not other.asked


def test_the_large_model_answers_what_is_not_kept_and_the_answer_says_so(both):
    one, other = small(), large()
    with both(one, other) as http:
        response = http.post(CHAT, json=ASK | {"temperature": 0})
    answer = response.json()
    assert answer["model"] == "large"
    assert answer["choices"][0]["message"]["content"] == "72"
    confidence = answer["choices"][0]["confidence"]
    assert confidence["probability"] is confidence["keep"] is None
    assert confidence["reason"] and confidence["escalated"] is True
    told = confidence["escalation"]
    assert told["why"] == "it is not kept"
    assert 0.1 < told["small"]["probability"] < 0.3
    assert told["small"]["generated_tokens"] == told["large"]["generated_tokens"] == 5
    assert json.loads(other.asked[0][2]) == ASK | {
        "temperature": 0,
        "model": "large",
        "stream": False,
    }
    assert answer["choices"][0]["logprobs"] is None


def test_nothing_of_the_client_but_its_question_reaches_the_large_server_nor_its_headers_the_client(
    both, caplog
):
    one, other = small(), large()
    mine = {"authorization": f"Bearer {KEY}", "cookie": "session=1", "x-own": "1", "api-key": KEY}
    with both(one, other) as http:
        for stream in (False, True):
            got = http.post(CHAT + f"?key={KEY}", json=ASK | {"stream": stream}, headers=mine)
            assert got.headers["x-from"] == "m"
            assert got.headers.get_list("set-cookie") == ["own=m"]
            http.cookies.clear()
    for path, headers, content in other.asked:
        assert path == CHAT
        assert headers["authorization"] == f"Bearer {LARGE_KEY}"
        assert {*map(str.lower, headers)} == {
            *("host", "authorization", "accept", "accept-encoding"),
            *("content-type", "content-length", "user-agent"),
        }
        assert KEY not in str(headers) + content.decode()
    for path, headers, content in one.asked:
        assert path.endswith(KEY) and headers["authorization"] == f"Bearer {KEY}"
        assert LARGE_KEY not in str(headers) + content.decode()
    assert len(one.asked) == len(other.asked) == 2
    assert KEY not in caplog.text and LARGE_KEY not in caplog.text


@pytest.mark.parametrize(("threshold", "model"), [(0.05, "m"), (0.9, "large")])
def test_answers_are_kept_by_the_promise_of_a_cascade(both, of_top_k, threshold, model):
    """Whose threshold decides, and not that of an error rate."""
    guarantee = CascadeThreshold(**GUARANTEE | {"threshold": threshold})
    control = CascadeControl(large="large", confidence=0.9, thresholds=(guarantee,))
    fits = of_top_k.fits.model_copy(update={"cascade": control, "splits": {0: of_top_k.final}})
    scorer = Scorer(replace(of_top_k, fits=fits), READING, "below:0.05")
    with both(small(), large(), scorer, guarantee="below:0.05") as http:
        for stream in (False, True):
            response = http.post(CHAT, json=ASK | {"stream": stream})
            told = chunks(response)[-1] if stream else response.json()
            assert told["model"] == model
            own = confidence_of(chunks(response)) if stream else told["choices"][0]["confidence"]
            assert own["escalated"] is (model == "large") and own["error_rate"] is None
            if model == "m":
                assert own["keep"] is True and own["promise"] == "below:0.05"


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_the_other_forms_are_escalated_too(both, of_top_k, path, stream):
    """The scorer's servers know another model, so that nothing is known of their answers."""
    fitted_on = of_top_k.fitted_on.model_copy(update={"model": "another"})
    scorer = Scorer(replace(of_top_k, fitted_on=fitted_on), READING, 0.3)
    one, other = Upstream(), Upstream()
    with both(one, other, scorer) as http:
        asked = {"model": "m", "prompt": "how many?", "input": "how many?", "stream": stream}
        response = http.post(path, json=asked)
    told = chunks(response)[-1] if stream else response.json()
    told = told.get("response", told)
    holder = told["choices"][0] if "choices" in told else told
    assert holder["confidence"]["escalated"] is True
    assert "fitted on answers of 'another'" in holder["confidence"]["escalation"]["why"]
    assert json.loads(other.asked[0][2])["model"] == "large"


def test_an_answer_without_confidence_is_not_kept_and_so_escalated(both):
    one = small("null")
    with both(one, large()) as http:
        choice = http.post(CHAT, json=ASK).json()["choices"][0]
    assert choice["message"]["content"] == "72"
    assert "no log-probabilities" in choice["confidence"]["escalation"]["why"]
    assert choice["confidence"]["escalation"]["small"]["probability"] is None


@pytest.mark.parametrize("stream", [False, True])
def test_several_choices_are_not_escalated_and_say_so(both, stream):
    other = large()
    with both(small(), other) as http:
        response = http.post(CHAT, json=ASK | {"n": 2, "stream": stream})
        assert http.proxy.escalation.outcomes == {"several": 1}
    told = (
        confidence_of(chunks(response)) if stream else response.json()["choices"][0]["confidence"]
    )
    assert told["escalated"] is False and told["keep"] is False
    assert "several choices" in told["escalation"]["why"]
    assert not other.asked


def test_a_calibrator_of_the_large_model_gives_both_probabilities(both, content, tmp_path):
    own = content | {"fitted_on": content["fitted_on"] | {"model": "large", "entropy": "top-k"}}
    write_json(own, tmp_path / "L.json")
    other = Model(SURE, "51", model="large")
    with both(small(), other, escalate_calibrator=str(tmp_path / "L.json")) as http:
        for stream in (False, True):
            got = http.post(CHAT, json=ASK | {"stream": stream})
            confidence = (
                confidence_of(chunks(got)) if stream else got.json()["choices"][0]["confidence"]
            )
            told = confidence["escalation"]
            assert confidence["keep"] is True
            assert told["small"]["probability"] < 0.3 < 0.6 < told["large"]["probability"]
            assert confidence["probability"] == told["large"]["probability"]
    assert json.loads(other.asked[0][2])["top_logprobs"] == 20


# Streams.


def test_a_held_stream_is_the_large_models_alone(both):
    with both(small(), large()) as http:
        told = chunks(http.post(CHAT, json=ASK | {"stream": True}))
        options = {"stream": True, "stream_options": {"include_usage": True}}
        with_usage = chunks(http.post(CHAT, json=ASK | options))
    assert {one["model"] for one in told} == {"large"}
    assert text_of(told) == "72"
    escalation = confidence_of(told)["escalation"]
    assert escalation["small"]["generated_tokens"] == 5
    assert escalation["large"]["generated_tokens"] == COUNTED["completion_tokens"]
    assert all(one["choices"] for one in told)
    assert with_usage[-1]["usage"] == COUNTED


def test_a_held_stream_comes_at_once_when_it_is_kept(both):
    with (
        both(small(SURE, "51", pause=0.5), large()) as http,
        http.stream("POST", CHAT, json=ASK | {"stream": True}) as response,
    ):
        assert len([part for part in response.iter_raw() if part]) == 1


# Servers that fail.


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_where_the_large_server_fails_the_small_ones_answer_comes_back_marked(
    both, trouble, stream
):
    with both(small(), failing(trouble), timeout=1) as http:
        response = http.post(CHAT, json=ASK | {"stream": stream})
        assert http.proxy.escalation.outcomes == {"failed": 1}
    if stream:
        told = chunks(response)
        text, confidence = text_of(told), confidence_of(told)
        assert response.text.endswith("data: [DONE]\n\n")
    else:
        choice = response.json()["choices"][0]
        text, confidence = choice["message"]["content"], choice["confidence"]
    assert response.status_code == 200 and text == "aaaa"
    assert confidence["escalated"] is False and confidence["keep"] is False
    assert "it is not kept; the large server failed (" in confidence["escalation"]["why"]
    assert LARGE_KEY not in response.text


class EndsOnce(Model):
    """Ends the connection of the second request, which it may have worked on."""

    async def _answered(self, request, content):
        if len(self.asked) == 2:
            request.transport.abort()
        return await super()._answered(request, content)


def test_the_large_server_which_costs_money_is_asked_once(both):
    other = EndsOnce([token("72", -0.25, TWO), SURE[1]], "72", "large")
    with both(small(), other) as http:
        choices = [http.post(CHAT, json=ASK).json()["choices"][0] for _ in range(3)]
    assert [one["confidence"]["escalated"] for one in choices] == [True, False, True]
    assert len(other.asked) == 3


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("trouble", ["stalls", "deep"])
def test_a_large_server_that_gives_no_answer_costs_no_small_one(both, trouble, stream):
    """It keeps its connection alive for ever, or answers what cannot be read."""
    other = large(trouble=trouble)
    with both(small(), other, escalate_timeout=1) as http:
        response = http.post(CHAT, json=ASK | {"stream": stream})
        assert until(lambda: other.left == (trouble == "stalls"))
    told = chunks(response) if stream else response.json()
    text = text_of(told) if stream else told["choices"][0]["message"]["content"]
    assert text == "aaaa"
    why = (confidence_of(told) if stream else told["choices"][0]["confidence"])["escalation"]["why"]
    reason = (
        "it did not answer in time, --escalate-timeout" if trouble == "stalls" else "its answer"
    )
    assert f"the large server failed ({reason}" in why


def test_a_large_stream_that_has_begun_may_take_its_time(both):
    with both(small(), large(pause=0.8), escalate_timeout=1) as http:
        told = chunks(http.post(CHAT, json=ASK | {"stream": True}))
    assert text_of(told) == "72" and confidence_of(told)["escalated"] is True


def test_a_large_server_that_fails_midway_ends_the_stream_with_an_error(both):
    with both(small(), large(trouble="breaks midway")) as http:
        *begun, last = chunks(http.post(CHAT, json=ASK | {"stream": True}))
        assert http.proxy.escalation.outcomes == {"failed": 1}
    assert text_of(begun) == "72"
    assert last["error"]["message"].startswith("the large server failed (")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("trouble", ["wrong JSON", "no answer"])
def test_what_is_no_answer_of_the_small_server_is_escalated(both, trouble, stream):
    with both(small(trouble=trouble), large()) as http:
        response = http.post(CHAT, json=ASK | {"stream": stream})
    kind = "text/event-stream" if stream else "application/json"
    assert response.headers["content-type"].startswith(kind)
    assert "72" in response.text
    assert '"escalated":true' in response.text


def test_a_small_stream_that_breaks_is_escalated(both):
    with both(small(trouble="breaks midway"), large()) as http:
        told = chunks(http.post(CHAT, json=ASK | {"stream": True}))
    assert text_of(told) == "72"
    assert "the upstream server failed" in confidence_of(told)["escalation"]["why"]


def test_a_refusal_of_the_small_server_is_final_so_that_it_decides_who_may_ask(both):
    for trouble, status in (("refuses", 401), ("hangs", 504)):
        other = large()
        with both(small(trouble=trouble), other, timeout=1) as http:
            assert http.post(CHAT, json=ASK).status_code == status
        assert not other.asked
    with both(small(trouble="hangs"), None, timeout=1) as http:
        assert http.post(CHAT, json=ASK).status_code == 504


@pytest.mark.parametrize("stream", [False, True])
def test_where_both_fail_the_client_gets_an_error(both, stream):
    with both(small(trouble="wrong JSON"), None) as http:
        response = http.post(CHAT, json=ASK | {"stream": stream})
    assert response.text.strip().endswith("{oh no")
    with both(small(trouble="breaks midway"), None) as http:
        response = http.post(CHAT, json=ASK | {"stream": True})
    assert "the upstream server failed (" in chunks(response)[-1]["error"]["message"]


# Clients that leave, and limits.


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("waits_for", ["small", "large"])
def test_a_client_that_leaves_ends_its_request_to_either_server(both, waits_for, stream):
    one = small(trouble="hangs" if waits_for == "small" else None)
    other = large(trouble="hangs")
    asked = one if waits_for == "small" else other
    body = json.dumps(ASK | {"stream": stream}).encode()
    with both(one, other) as http:
        with by_hand(str(http.base_url), asked_by_hand(CHAT, body=body, method="POST")):
            assert until(lambda: len(asked.asked) == 1)
        assert until(lambda: asked.left == 1)
        assert until(lambda: http.proxy.n_running == 0)


def test_a_client_that_leaves_a_held_stream_ends_it(both):
    one = small([*UNSURE] * 40, "a" * 160, pause=0.2)
    body = json.dumps(ASK | {"stream": True}).encode()
    with both(one, large()) as http:
        with by_hand(str(http.base_url), asked_by_hand(CHAT, body=body, method="POST")):
            assert until(lambda: len(one.asked) == 1)
        assert until(lambda: one.left == 1)
        assert until(lambda: http.proxy.n_running == 0)


def test_what_is_too_large_to_hold_back_is_passed_on_unescalated(both):
    other = large()
    with both(small(UNSURE * 40, "a" * 160), other, max_body=0.01) as http:
        told = chunks(http.post(CHAT, json=ASK | {"stream": True}))
        assert http.proxy.escalation.outcomes == {"too_large": 1}
    assert text_of(told) == "a" * 160
    assert "too large" in confidence_of(told)["escalation"]["why"]
    assert not other.asked


def test_under_load_no_living_client_loses_its_request_and_nothing_crosses(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACECAL_ESCALATE_KEY", load.LARGE_KEY)
    result, (before, after), memory, log = load.run(30, 4, tmp_path, escalates=True)
    assert result.lost == []
    assert result.crossed == []
    assert result.happened["answered"] > 30
    assert result.happened["large: slow"] > 20
    assert result.answering == 0
    assert after <= before
    assert memory[-1] < memory[0] + 100
    assert "Traceback" not in log


def test_so_do_several_processes_that_share_a_state(tmp_path, monkeypatch):
    """A fifth of the clients leaves, many while an answer is escalated."""
    monkeypatch.setenv("TRACECAL_ESCALATE_KEY", load.LARGE_KEY)
    state = tmp_path / "state.db"
    more = ["--workers", "2", "--watch", str(state), "--keep-texts", "50"]
    result, (_, after), _, log = load.run(30, 6, tmp_path, escalates=True, more=more)
    assert result.lost == []
    assert result.crossed == []
    assert result.happened["left"] > 5
    assert result.answering == after == 0
    assert "Traceback" not in log and "does not watch" not in log
    with closing(sqlite3.connect(state)) as connection:
        rows = connection.execute("SELECT place FROM answers ORDER BY place").fetchall()
        texts = connection.execute("SELECT place FROM texts ORDER BY place").fetchall()
    assert [place for (place,) in rows] == [*range(1, len(rows) + 1)]
    assert len(rows) > 30
    assert texts == rows[-50:]


# The command.


def test_the_command_escalates_with_the_key_of_its_environment_and_writes_none(
    content, tmp_path, monkeypatch
):
    monkeypatch.setenv("LARGE_KEY", LARGE_KEY)
    other = large()
    content = content | {"fitted_on": content["fitted_on"] | {"entropy": "top-k"}}
    with small().serving() as one, other.serving() as two:
        options = ["--upstream", one.url, "--error-rate", "0.3", "--processed", "no"]
        options += ["--escalate", two.url, "--escalate-model", "large"]
        options += ["--escalate-key-env", "LARGE_KEY"]
        with command(content, tmp_path, *options) as (_, address, log):
            got = httpx.post(address + CHAT, json=ASK, timeout=60)
    assert got.json()["choices"][0]["message"]["content"] == "72"
    assert other.asked[0][1]["authorization"] == f"Bearer {LARGE_KEY}"
    assert f"answers that are not kept are escalated to {two.url}" in log.read_text()
    assert LARGE_KEY not in log.read_text()


# A guarantee of a cascade, as a calibrator's file holds it.
GUARANTEE = {
    "promise": "below",
    "promised": 0.05,
    "threshold": 0.6,
    "n": 100,
    "groups": 100,
    "largest_group": 1,
    "escalated": 0.5,
    "accuracy": 0.9,
    "small_accuracy": 0.8,
    "large_accuracy": 0.9,
}
GIVEN = ["--escalate", "http://l", "--escalate-model", "large", "--error-rate", "0.3"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (GIVEN[:4], "--escalate needs --error-rate or --guarantee"),
        (["--guarantee", "below:0.05"], "--guarantee needs --escalate"),
        ([*GIVEN, "--guarantee", "below:0.05"], "give --error-rate or --guarantee"),
        ([*GIVEN[:4], "--guarantee", "below:0.05"], "has no guarantee 'below:0.05'; it has: none"),
        (GIVEN[:2], "--escalate needs --escalate-model"),
        (["--escalate-model", "x"], "--escalate-model needs --escalate"),
        (["--escalate", "nowhere", *GIVEN[2:]], "escalate: is not an address"),
        (["--escalate", "http://a:b@c", *GIVEN[2:]], "must not hold a password"),
        ([*GIVEN[:4], "--error-rate", "0.05"], "no answer would be kept, and all be escalated"),
        (
            ["--escalate", "http://s/v1", "--escalate-model", "m", *GIVEN[4:]],
            "name a larger model",
        ),
        ([*GIVEN, "--escalate-key-env", "NO_SUCH_KEY"], "the environment has no NO_SUCH_KEY"),
        ([*GIVEN, "--escalate-key-env", KEY], "is not the name of an environment variable"),
        ([*GIVEN, "--escalate-calibrator", "{folder}/x"], "x cannot"),
    ],
)
def test_what_cannot_be_escalated_is_refused_before_it_starts(
    calibrator_file, tmp_path, caplog, options, reason
):
    options = [option.format(folder=tmp_path) for option in options]
    start = ["serve", "--calibrator", str(calibrator_file), "--port", "0", "--upstream", "http://s"]
    assert main([*start, *options]) == 1
    assert reason in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("stored", "promise", "reason"),
    [
        ("l", "below:0.05", "is of escalating to l, and --escalate-model is large"),
        (None, "below:0.05", "is of escalating to a model without a name"),
        ("large", "below:0.01", "no answer would be kept, and all be escalated: too few"),
        (
            "large",
            "at_least:0.9",
            "has no guarantee 'at_least:0.9'; it has: below:0.05, below:0.01",
        ),
    ],
)
def test_a_promise_of_another_cascade_is_refused(
    content, tmp_path, caplog, stored, promise, reason
):
    without = GUARANTEE | {"promised": 0.01, "threshold": None, "reason": "too few"}
    told = {"large": stored, "confidence": 0.9, "thresholds": [GUARANTEE, without]}
    path = tmp_path / "C.json"
    routed = {"cascade": told, "splits": {"0": content[DEFAULT]["final"]}}
    write_json(content | {DEFAULT: content[DEFAULT] | routed}, path)
    start = ["serve", "--calibrator", str(path), "--port", "0", "--upstream", "http://s"]
    assert main([*start, *GIVEN[:4], "--guarantee", promise]) == 1
    assert reason in caplog.text


def test_metrics_count_escalations(both, of_top_k, tmp_path):
    given = {"upstream": "http://x", "watch": str(tmp_path / "s.db")}
    watcher = Watcher(of_top_k, 0.3, ProxySettings(**given))
    scorer = Scorer(of_top_k, READING, 0.3, watcher)
    with both(small(), large(), scorer) as http:
        for stream in (False, True):
            http.post(CHAT, json=ASK | {"stream": stream})
        told = samples(http.get("/metrics").text)
    assert told['tracecal_escalations_total{outcome="escalated"}'] == 2
    assert told['tracecal_escalations_total{outcome="failed"}'] == 0
    assert told['tracecal_answers_total{keep="false"}'] == 2


def test_the_documents_commands_are_read_as_they_stand(monkeypatch):
    text = (REPOSITORY / "docs/guides/cascades.md").read_text(encoding="utf-8")
    told = re.findall(r"^tracecal ((?:.+\\\n)*.+)$", text, re.MULTILINE)
    read = []
    for one in told:
        name, *options = shlex.split(one.replace("\\\n", " "))
        read.append(COMMANDS[name].build().make_context(name, options).params)
    assert len(read) == 5
    serving = [given for given in read if "upstream" in given]
    for given in serving:
        ProxySettings(**{name: given[name] for name in ProxySettings.model_fields})
    assert [given["guarantee"] for given in serving] == [None, "below:0.02"]
