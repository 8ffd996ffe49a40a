"""The code of docs/guides/evaluators.md for trace stores in the real packages, before a server that
keeps what it gets. A package that is not installed is left out: `pip install langfuse
arize-phoenix-client opik`.
"""

import gzip
import json
import re
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web

from support.upstream import Background
from tracecal.cli.main import main

pytestmark = pytest.mark.evaluators

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/guides/evaluators.md").read_text(encoding="utf-8")
STORES = PAGE[PAGE.index("\n## Trace stores\n") :]
ROW = json.loads((ROOT / "examples/new.jsonl").open(encoding="utf-8").readline())
TRACE = "0af7651916cd43dd8448eb211c80319c"
OPIK_TRACE = "01935000-0000-7000-8000-000000000001"  # a UUID of version 7, as Opik's are


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The functions that the page defines."""
    folder = tmp_path_factory.mktemp("stores")
    labelled = str(ROOT / "examples/labelled.jsonl")
    given = ["--task", "cities", "--vocabulary", "49152", "--output", str(folder / "C.json")]
    assert main(["calibrate", "--answers", labelled, *given]) == 0
    functions = {}
    code = "\n".join(re.findall(r"```python\n(.*?)```", STORES, re.DOTALL))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(code, "evaluators.md", "exec"), functions)
    return functions


@pytest.fixture(scope="module")
def expected(page):
    confidence = page["calibrator"].score_response(ROW["response"], ROW["request"], error_rate=0.2)
    assert confidence.keep is not None
    return {"probability": confidence.probability, "keep": float(confidence.keep)}


@contextmanager
def keeping():
    """The address of a server that answers everything, and the (path, body) that it gets."""
    bodies = []

    async def answer(request):
        body = await request.read()
        if body[:2] == b"\x1f\x8b":
            body = gzip.decompress(body)
        bodies.append((request.path, json.loads(body) if body[:1] in (b"{", b"[") else None))
        return web.json_response({"data": [], "successes": [], "errors": []})

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    with Background(application) as server:
        yield server.url, bodies


def scores_in(bodies, path):
    """The objects below the `path`'s end that have a name."""

    def walk(value):
        if isinstance(value, dict):
            if "name" in value:
                yield value
            value = list(value.values())
        if isinstance(value, list):
            for part in value:
                yield from walk(part)

    return {one["name"]: one for at, body in bodies if at.endswith(path) for one in walk(body)}


def test_langfuse(page, expected):
    langfuse = pytest.importorskip("langfuse")
    with keeping() as (url, bodies):
        client = langfuse.Langfuse(public_key="p", secret_key="s", base_url=url)
        page["write_langfuse"](client, TRACE, ROW["response"], ROW["request"])
        client.flush()
        client.shutdown()
    scores = scores_in(bodies, "/api/public/scores")
    assert {name: score["value"] for name, score in scores.items()} == expected
    assert {score["traceId"] for score in scores.values()} == {TRACE}
    assert [scores[name]["dataType"] for name in expected] == ["NUMERIC", "BOOLEAN"]


def test_phoenix(page, expected):
    phoenix = pytest.importorskip("phoenix.client")
    with keeping() as (url, bodies):
        client = phoenix.Client(base_url=url)
        page["write_phoenix"](client, TRACE, ROW["response"], ROW["request"])
    scores = scores_in(bodies, "/v1/trace_annotations")
    assert {name: score["result"]["score"] for name, score in scores.items()} == expected
    assert {score["trace_id"] for score in scores.values()} == {TRACE}


def test_opik(page, expected, monkeypatch):
    monkeypatch.setenv("OPIK_SENTRY_ENABLE", "false")
    opik = pytest.importorskip("opik")
    with keeping() as (url, bodies):
        client = opik.Opik(host=f"{url}/api", workspace="default", project_name="answers")
        page["write_opik"](client, OPIK_TRACE, ROW["response"], ROW["request"])
        client.flush()
        client.end()
    scores = scores_in(bodies, "/traces/feedback-scores")
    assert {name: score["value"] for name, score in scores.items()} == expected
    assert {score["id"] for score in scores.values()} == {OPIK_TRACE}


def test_a_score_that_is_null_is_not_written(page):
    response = json.loads(json.dumps(ROW["response"]))
    response["choices"][0]["logprobs"] = None
    values, reason = page["scores"](response, ROW["request"])
    assert values == {}
    assert "log-probabilities" in reason
