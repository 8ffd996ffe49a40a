"""A reasoning model's log, made with OpenAI's client: refusals, tool calls and reasoning that was cut."""

import json
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web

import tracecal
from support.log_rows import write
from support.running import proxied
from support.upstream import Background
from tracecal.answers.reading import Reading
from tracecal.calibrator.trace_kinds import reading_for
from tracecal.serving.scorer import Scorer

openai = pytest.importorskip("openai")
pytestmark = pytest.mark.evaluators

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RATE = 0.3
CALL = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
# Of ten answers the last four are none: what the message holds, and why it ended.
NONE = {
    6: ({"refusal": "I can't help."}, "stop", "refused"),
    7: ({"tool_calls": [CALL]}, "tool_calls", "called a tool"),
    8: ({"reasoning_content": "Let me see."}, "length", "cut while reasoning"),
    9: ({"content": ""}, "content_filter", "filtered"),
}
THOUGHT = {"token": "Hm.", "logprob": -0.7, "bytes": list(b"Hm."), "top_logprobs": []}


def examples(name, n):
    lines = (EXAMPLES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[:n]]


def responses(rows):
    """What a server of a reasoning model says: its thoughts stand before the answers' tokens."""
    for place, row in enumerate(rows):
        response = json.loads(json.dumps(row["response"]))
        (choice,) = response["choices"]
        if place % 10 in NONE:
            message, choice["finish_reason"], _ = NONE[place % 10]
            choice["message"] = {"role": "assistant", "content": None} | message
            choice["logprobs"] = {"content": []}
        else:
            choice["message"]["reasoning_content"] = "Hm."
            choice["logprobs"]["content"].insert(0, THOUGHT)
        yield response


@contextmanager
def server(rows):
    left = responses(rows)

    async def answer(request):
        return web.json_response(next(left))

    application = web.Application()
    application.router.add_post("/v1/chat/completions", answer)
    with Background(application) as running:
        yield running.url


def asked(url, rows):
    """The rows of a log that OpenAI's client makes: requests with their responses."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key="x") as client:
        return [
            {"id": row["id"], "request": row["request"], "response": response.model_dump()}
            for row in rows
            for response in [client.chat.completions.create(**row["request"])]
        ]


def test_a_log_of_a_reasoning_model_is_calibrated_scored_served_and_checked(tmp_path):
    labelled, new = examples("labelled", 200), examples("new", 40)
    with server(labelled) as url:
        log = asked(url, labelled)
    judged = [row | {"correct": old["correct"]} for row, old in zip(log, labelled, strict=True)]
    path = write(tmp_path / "log.jsonl", judged)
    reading = Reading(vocabulary=49152, failed="incorrect")
    calibrator = tracecal.calibrate(path, "cities", reading=reading)
    assert calibrator.fitted_on.n == len(judged)
    assert calibrator.fitted_on.reasoning == "apart"
    assert calibrator.fitted_on.n_missing == len(judged) * len(NONE) // 10

    with server(new) as url:
        rows = asked(url, new)
    scored = calibrator.score(write(tmp_path / "new.jsonl", rows), error_rate=RATE)
    expected = scored.select("probability", "keep", "reason").rows()
    for place, (probability, keep, reason) in enumerate(expected):
        none = NONE.get(place % 10)
        assert (probability is None, reason) == (none is not None, none and none[2])
        assert keep is False if none else keep is not None

    predictor = calibrator.predictor()
    scorer = Scorer(predictor, reading_for(predictor.fitted_on, Reading()), RATE)
    with server(new) as url, proxied(scorer, url) as serving:
        served = [row["response"]["choices"][0]["confidence"] for row in asked(serving.url, new)]
    for confidence, (probability, keep, reason) in zip(served, expected, strict=True):
        assert confidence["probability"] == pytest.approx(probability, abs=1e-12)
        assert (confidence["keep"], confidence["reason"]) == (keep, reason)

    truth = [row | {"correct": True} for row in rows]
    checked = tracecal.check(truth, calibrator, RATE)
    assert (checked.n_answers, checked.n_undecided) == (len(rows), 0)
    assert checked.n_kept == sum(keep for _, keep, _ in expected)
