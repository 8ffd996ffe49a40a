"""The clients of examples/ in the real packages, before a server that gives recorded answers."""

import asyncio
import json
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
from aiohttp import web

import tracecal
from support.invoices import fields_to_check, invoices
from support.upstream import Background
from tracecal.calibrator.scoring import DIGITS
from tracecal.cli.main import main

litellm = pytest.importorskip("litellm")
openai = pytest.importorskip("openai")
pytestmark = pytest.mark.evaluators

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ROWS = [json.loads(line) for line in (EXAMPLES / "new.jsonl").open(encoding="utf-8")][:6]
RATE = 0.2


@pytest.fixture(scope="module")
def calibrator(tmp_path_factory):
    path = tmp_path_factory.mktemp("clients") / "C.json"
    given = ["--task", "cities", "--vocabulary", "49152", "--processed", "no"]
    labelled = str(EXAMPLES / "labelled.jsonl")
    assert main(["calibrate", "--answers", labelled, *given, "--output", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def expected(calibrator):
    """What `tracecal score` says of the same answers, which it rounds."""
    output = calibrator.with_name("scored.parquet")
    given = ["--calibrator", str(calibrator), "--error-rate", str(RATE), "--processed", "no"]
    told = ["--answers", str(EXAMPLES / "new.jsonl"), *given, "--output", str(output)]
    assert main(["score", *told]) == 0
    scored = pl.read_parquet(output).head(len(ROWS))
    assert set(scored["keep"]) == {True, False}
    return scored.select("probability", "keep").rows()


@contextmanager
def serving(responses, status=200):
    """The address of a server that gives these, and the requests that it gets."""
    asked, left = [], iter(responses)

    async def answer(request):
        asked.append(await request.json())
        return web.json_response(next(left), status=status)

    application = web.Application()
    application.router.add_post("/v1/chat/completions", answer)
    with Background(application) as server:
        yield f"{server.url}/v1", asked


@pytest.fixture
def server():
    with serving(row["response"] for row in ROWS) as server:
        yield server


@pytest.fixture
def requests(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setattr(litellm, "callbacks", [])
    return [
        {name: row["request"][name] for name in ("model", "messages", "temperature")}
        for row in ROWS
    ]


def require_asked(asked):
    assert {(one["logprobs"], one["top_logprobs"]) for one in asked} == {(True, 20)}


def test_openais_client(server, requests, calibrator, expected):
    from openai_client import confident

    url, asked = server
    client = openai.OpenAI(base_url=url, api_key="x")
    create = confident(client.chat.completions.create, str(calibrator), RATE, processed="no")
    found = [create(**request).choices[0].confidence for request in requests]
    assert [(round(one.probability, DIGITS), one.keep) for one in found] == expected
    require_asked(asked)


def test_the_fields_of_an_extraction(tmp_path, monkeypatch):
    """The program of docs/guides/extraction.md."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    with serving(invoices()[1]) as (url, asked):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        doubted = fields_to_check(tmp_path)
    require_asked(asked)
    assert {one["response_format"]["type"] for one in asked} == {"json_schema"}
    assert {*doubted} == {"number", "total"}


def asked_through(callback, url, requests):
    """The confidences that LiteLLM's answers to these requests carry."""
    litellm.callbacks = [callback]

    async def ask(model, **request):
        to = {"model": f"openai/{model}", "api_base": url, "api_key": "x"}
        return (await litellm.acompletion(**request, **to)).choices[0].confidence

    async def everything():
        return [await ask(**request) for request in requests]

    return asyncio.run(everything())


def test_litellms_callback(server, requests, calibrator, expected):
    from litellm_callback import Confidence

    url, asked = server
    found = asked_through(Confidence(str(calibrator), RATE, processed="no"), url, requests)
    assert [(round(one["probability"], DIGITS), one["keep"]) for one in found] == expected
    require_asked(asked)


def test_litellms_callback_says_why_there_is_no_confidence(requests, calibrator):
    from litellm_callback import Confidence

    response = ROWS[0]["response"]
    choice = response["choices"][0] | {"logprobs": None}
    answers = [response | {"model": "another"}, response | {"choices": [choice]}]
    with serving(answers) as (url, _):
        callback = Confidence(str(calibrator), RATE)
        found = asked_through(callback, url, [requests[0]] * 2)
    assert [one["keep"] or one["probability"] for one in found] == [None, None]
    assert "by 'another'" in found[0]["reason"]
    assert "log-probabilities" in found[1]["reason"]


LARGE = {"model": "large", "choices": [{"message": {"role": "assistant", "content": "Large."}}]}
FAILURE = {"error": {"message": "out of order"}}


def escalation(url, large_url, calibrator):
    from litellm_router import Escalation

    addresses = {"small": (ROWS[0]["request"]["model"], url), "large": ("large", large_url)}
    models = [
        {
            "model_name": name,
            "litellm_params": {"model": f"openai/{model}", "api_base": base, "api_key": "x"},
        }
        for name, (model, base) in addresses.items()
    ]
    router = litellm.Router(model_list=models, num_retries=0)
    return Escalation(router, str(calibrator), "small", "large", processed="no", error_rate=RATE)


def ask_router(router, requests):
    async def ask_all():
        return [(await router.acompletion(**request)).choices[0] for request in requests]

    return asyncio.run(ask_all())


def test_litellms_router_escalates_what_is_not_kept(server, requests, calibrator, expected):
    url, asked = server
    with serving([LARGE] * len(ROWS)) as (large_url, asked_large):
        choices = ask_router(escalation(url, large_url, calibrator), requests)
    confidences = [choice.confidence for choice in choices]
    assert [(round(c["probability"], DIGITS), c["keep"]) for c in confidences] == expected
    for choice, row in zip(choices, ROWS, strict=True):
        small = row["response"]["choices"][0]["message"]["content"]
        assert choice.confidence["escalated"] is not choice.confidence["keep"]
        assert choice.message.content == (small if choice.confidence["keep"] else "Large.")
    require_asked(asked)
    escalated = [
        request["messages"]
        for request, (_, keep) in zip(requests, expected, strict=True)
        if not keep
    ]
    assert [request["messages"] for request in asked_large] == escalated
    assert not any("logprobs" in request for request in asked_large)


def test_litellms_router_answers_where_the_large_model_fails(requests, calibrator, expected):
    place = [keep for _, keep in expected].index(False)
    small = ROWS[place]["response"]
    with serving([small]) as (url, _), serving([FAILURE] * 4, 500) as (large_url, asked_large):
        router = escalation(url, large_url, calibrator)
        (choice,) = ask_router(router, [requests[place]])
    assert len(asked_large) >= 1
    assert choice.message.content == small["choices"][0]["message"]["content"]
    assert "out of order" in choice.confidence["failure"]
    assert choice.confidence["escalated"] is False


def test_litellms_router_escalates_what_it_cannot_read(requests, calibrator):
    response = ROWS[0]["response"] | {"model": "another"}
    with serving([response]) as (url, _), serving([LARGE]) as (large_url, _):
        router = escalation(url, large_url, calibrator)
        (choice,) = ask_router(router, requests[:1])
        for wrong in ({"n": 2}, {"stream": True}):
            with pytest.raises(tracecal.InputError, match="one answer, not streamed"):
                ask_router(router, [requests[0] | wrong])
    assert choice.message.content == "Large."
    assert choice.confidence["escalated"] and choice.confidence["keep"] is None
    assert "by 'another'" in choice.confidence["reason"]
