"""OpenAI's own client keeps the confidence: make test-evaluators, and test-vllm with vLLM's version."""

import pytest

from support.log_rows import TWO, token
from support.running import ASK
from support.upstream import ANSWERS, Upstream, response

openai = pytest.importorskip("openai")
pytestmark = [pytest.mark.evaluators, pytest.mark.vllm]

BEGUN = {"id": "resp_1", "created_at": 1.0, "object": "response", "model": "m", "output": []}
BEGUN |= {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
PLACE = {"output_index": 0, "content_index": 0, "item_id": "msg_1"}
ASKED = {"model": "m", "input": "how many?"}


def responses():
    """A Responses object, and the data of its events, as OpenAI's server writes them."""
    whole = BEGUN | response()
    (item,) = whole["output"] = [whole["output"][0] | {"id": "msg_1", "status": "completed"}]
    (part,) = item["content"]
    said = [
        ("created", {"response": BEGUN}),
        ("output_item.added", {"output_index": 0, "item": item | {"content": []}}),
        ("content_part.added", PLACE | {"part": part | {"text": "", "logprobs": []}}),
        ("output_text.delta", PLACE | {"delta": "51", "logprobs": [token("51", -0.25, TWO)]}),
        ("output_text.done", PLACE | {"text": "51", "logprobs": part["logprobs"]}),
        ("content_part.done", PLACE | {"part": part}),
        ("output_item.done", {"output_index": 0, "item": item}),
        ("completed", {"response": whole}),
    ]
    return whole, [
        {"type": f"response.{name}", "sequence_number": place} | more
        for place, (name, more) in enumerate(said)
    ]


@pytest.fixture
def api(client, monkeypatch):
    monkeypatch.setitem(ANSWERS, "/v1/responses", responses())
    with client(Upstream()) as http:
        yield openai.OpenAI(base_url=f"{http.base_url}/v1", api_key="x")


def test_of_chats(api):
    whole = api.chat.completions.create(**ASK).choices[0].confidence
    with api.chat.completions.stream(**ASK) as stream:
        held = stream.get_final_completion().choices[0].message.confidence
    assert held == whole
    assert whole["probability"] > 0


def test_of_responses(api):
    whole = api.responses.create(**ASKED).confidence
    *_, last = api.responses.create(**ASKED, stream=True)
    with api.responses.stream(**ASKED) as stream:
        held = stream.get_final_response()
    assert held.confidence == last.response.confidence == whole
    assert whole["probability"] > 0
    assert held.output_text == "51"
