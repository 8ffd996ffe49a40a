"""How a stream ends: one confidence for an answer, whatever the server writes of its end."""

import asyncio
import json
from copy import deepcopy
from types import MappingProxyType

import pytest
from aiohttp import ClientPayloadError

from support.log_rows import TWO, token
from support.running import ASK, CHAT, READING
from support.upstream import ANSWERS, CHUNKS, completion, piece
from tracecal.serving.endpoints import ENDPOINTS
from tracecal.serving.scored_stream import ScoredStream
from tracecal.serving.scorer import Scorer

DONE = "[DONE]"


class Response:
    """A server's response in pieces."""

    headers = MappingProxyType({})
    charset = None

    def __init__(self, chunks, is_done):
        data = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
        data += [DONE] * is_done
        self.text = "".join(f"data: {one}\n\n" for one in data).encode()
        self.content = self

    async def iter_any(self):
        step = 100 + len(self.text) // 50
        for start in range(0, len(self.text), step):
            yield self.text[start : start + step]


def passed_on(scorer, chunks, path=CHAT, is_done=True, request=ASK):
    """The data of the events that a client receives."""
    stream = ScoredStream(scorer, request, ENDPOINTS[path], 10**6)

    async def collect():
        return [e async for several in stream.events(Response(chunks, is_done)) for e in several]

    events = [event for event in asyncio.run(collect()) if event]
    assert all(event.endswith(b"\n\n") for event in events)
    return [event.decode().removeprefix("data: ").strip() for event in events]


def confidences(data):
    """The confidences of events by their places."""
    return {
        place: choice["confidence"]
        for place, text in enumerate(data)
        if text.endswith("}") and not text.endswith("data: }")
        for choice in json.loads(text)["choices"]
        if "confidence" in choice
    }


@pytest.fixture
def scorer(of_top_k):
    return Scorer(of_top_k, READING, 0.3)


def with_reasons(reasons, chunks=CHUNKS[:3]):
    chunks = deepcopy(chunks)
    for chunk, reason in zip(chunks, reasons, strict=True):
        chunk["choices"][0]["finish_reason"] = reason
    return chunks


@pytest.mark.parametrize("unended", ["", "null", " None ", None, False])
def test_an_empty_finish_reason_is_no_end(scorer, unended):
    data = passed_on(scorer, with_reasons([unended, unended, "stop"]))
    expected = passed_on(scorer, CHUNKS[:3])
    assert confidences(data) == confidences(expected)
    assert [*confidences(data)] == [2]


@pytest.mark.parametrize("unended", [None, "", "null"])
def test_a_stream_that_ends_without_one_has_its_confidence_in_a_last_event(scorer, unended):
    data = passed_on(scorer, with_reasons([unended] * 3))
    assert data[-1] == DONE and len(data) == 5
    ((place, confidence),) = confidences(data).items()
    assert place == 3 and confidence["probability"] is not None
    last = json.loads(data[3])
    assert last["model"] == "m"
    assert last["choices"][0]["delta"] == {"confidence": confidence}


def test_an_answer_that_may_be_cut_short_is_not_kept(scorer):
    data = passed_on(scorer, with_reasons([None] * 3), is_done=False)
    ((_, confidence),) = confidences(data).items()
    assert confidence["keep"] is None and "may be cut short" in confidence["reason"]
    assert json.loads(data[-1])["choices"][0]["delta"]["confidence"] == confidence


@pytest.mark.parametrize("path", [CHAT, "/v1/completions"])
def test_a_confidence_comes_once(scorer, path):
    chunks = ANSWERS[path][1]
    ending = next(c for c in chunks if c["choices"] and c["choices"][0]["finish_reason"])
    again = deepcopy(ending)
    again["choices"][0]["logprobs"] = None
    for is_done in (True, False):
        data = passed_on(scorer, [*chunks, again], path, is_done)
        assert len(confidences(data)) == 1
    unended = with_reasons([None] * 2, chunks[1:3] if path == CHAT else chunks)
    data = passed_on(scorer, unended, path)
    assert len(confidences(data)) == 1


LATE = {
    "text": piece("7", []),
    "token": piece("", [token("7", -0.25, TWO)]),
    "message": piece("", []),
}
LATE["thought"], LATE["tool"] = piece("", []), piece("", [], "tool_calls")
LATE["message"]["choices"][0]["message"] = {"content": "7"}
LATE["thought"]["choices"][0]["delta"] = {"reasoning_content": "hm"}
LATE["tool"]["choices"][0]["delta"] = {"tool_calls": [{"index": 0}]}
LATE["end"] = piece("", [], "content_filter")
LATE["failure"] = {"error": {"message": "out of memory"}, "choices": []}


@pytest.mark.parametrize("late", LATE.values(), ids=LATE)
@pytest.mark.parametrize("is_done", [True, False])
def test_what_comes_after_a_finish_reason_withdraws_the_decision(scorer, late, is_done):
    kept = confidences(passed_on(scorer, CHUNKS, is_done=is_done))
    assert [*kept] == [2] and kept[2]["keep"] is True and kept[2]["reason"] is None
    data = passed_on(scorer, [*CHUNKS, late], is_done=is_done)
    ((place, confidence),) = confidences(data).items()
    assert place == 2 and confidence["keep"] is None
    assert "the stream went on, or failed, after" in confidence["reason"]
    assert len(data) == len(CHUNKS) + 1 + is_done


@pytest.mark.parametrize(
    "unread", ['{"choices": [{"delta": {"content": "7"}}]}\ndata: }', "7", "[]", "x"]
)
def test_data_that_cannot_be_read_withdraws_it_too(scorer, unread):
    """Some clients read the lines of an event one by one."""
    for chunks in ([CHUNKS[1], unread, CHUNKS[2]], [*CHUNKS[:3], unread]):
        (confidence,) = confidences(passed_on(scorer, chunks)).values()
        assert (
            confidence["keep"] is None
            and confidence["reason"] == "data of the stream cannot be read"
        )
    (confidence,) = confidences(passed_on(scorer, [*CHUNKS, ""])).values()
    assert confidence["keep"] is True


def test_so_it_does_in_a_completion_and_in_a_response(scorer):
    whole = ANSWERS["/v1/completions"][1]
    data = passed_on(scorer, [*whole, completion(["51"], None)], "/v1/completions")
    assert [one["keep"] for one in confidences(data).values()] == [None]
    *begun, end = ANSWERS["/v1/responses"][1]
    for more in ([], [begun[-1]], [end]):
        data = passed_on(scorer, [*begun, end, *more], "/v1/responses")
        ended = [
            json.loads(text)["response"] for text in data[len(begun) : -1] if '"object"' in text
        ]
        assert [one["confidence"]["keep"] for one in ended] == [None if more else True] * len(ended)
        assert len(ended) == 1 + (more == [end])


def test_a_stream_that_breaks_after_a_finish_reason_is_not_kept(scorer):
    class Breaking(Response):
        async def iter_any(self):
            async for part in super().iter_any():
                yield part
            raise ClientPayloadError

    stream, passed = ScoredStream(scorer, ASK, ENDPOINTS[CHAT], 10**6), []

    async def collect():
        async for events in stream.events(Breaking(CHUNKS, False)):
            passed.extend(e.decode().removeprefix("data: ").strip() for e in events if e)

    with pytest.raises(ClientPayloadError):
        asyncio.run(collect())
    assert [*confidences(passed)] == [2] and len(passed) == len(CHUNKS)
    assert confidences(passed)[2]["keep"] is None
    assert "or failed" in confidences(passed)[2]["reason"]


def test_nothing_follows_the_end_of_a_stream(scorer):
    data = passed_on(scorer, CHUNKS)
    assert passed_on(scorer, [*CHUNKS, DONE, LATE["text"]]) == data


def test_texts_come_at_once_and_the_end_of_a_choice_of_several_in_its_place(scorer):
    """A chunk of two choices, of which one ends, is passed on in two."""
    both = deepcopy(CHUNKS[2])
    both["choices"].append(deepcopy(CHUNKS[1]["choices"][0]) | {"index": 1})
    ending = deepcopy(CHUNKS[2])
    ending["choices"][0]["index"] = 1
    data = passed_on(scorer, [CHUNKS[1], both, ending], request=ASK | {"n": 2})
    indices = [[choice["index"] for choice in json.loads(text)["choices"]] for text in data[:-1]]
    assert indices == [[0], [1], [0], [1]] and [*confidences(data)] == [2, 3]
    assert all(one["keep"] is True for one in confidences(data).values())


def test_an_answer_that_is_too_large_to_score_says_so_once(scorer):
    large = json.loads(json.dumps(CHUNKS[1]).replace('"51"', json.dumps("51" * 100_000)))
    data = passed_on(scorer, [CHUNKS[1], *[large] * 6, CHUNKS[2]])
    ((_, confidence),) = confidences(data).items()
    assert "larger than 1 MB" in confidence["reason"]


def test_choices_end_each_for_itself(scorer):
    other = with_reasons([None] * 3)
    for chunk in other:
        chunk["choices"][0]["index"] = 1
    data = passed_on(scorer, [*CHUNKS[:3], *other])
    assert [*confidences(data)] == [5, 6]
    assert [json.loads(data[place])["choices"][0]["index"] for place in range(5)] == [0, 0, 1, 1, 1]
    assert json.loads(data[5])["choices"][0]["index"] == 0
    assert json.loads(data[6])["choices"][0]["index"] == 1


def test_after_an_error_of_the_server_nothing_is_added(scorer):
    data = passed_on(scorer, [CHUNKS[1], {"error": {"message": "out of memory"}, "choices": []}])
    assert not confidences(data)


@pytest.mark.parametrize("error", ['{"object": "error"}', '{"type": "error"}', "{}\nevent: error"])
@pytest.mark.parametrize("place", [2, 3])
def test_an_error_in_another_form_leaves_no_answer_kept(scorer, error, place):
    data = passed_on(scorer, [*CHUNKS[:place], error, *CHUNKS[place:]])
    assert '"keep":true' in "".join(passed_on(scorer, CHUNKS))
    assert '"keep":null' in "".join(data) and '"keep":true' not in "".join(data)


@pytest.mark.parametrize(("index", "n", "keep"), [(None, 1, None), (1, None, None), (1, 2, True)])
def test_no_choice_is_kept_beside_one_that_was_not_asked_for(scorer, index, n, keep):
    """Clients that asked for one join the texts of all."""
    stray = piece(" not", [token(" not", -0.1)])
    stray["choices"][0]["index"] = index
    data = passed_on(scorer, [*CHUNKS[:2], stray, *CHUNKS[2:]], request=ASK | {"n": n})
    assert confidences(data)[3]["keep"] is keep


VALUES = ((["m"], True), (["", "m"], True), (["x", "m"], None))


@pytest.mark.parametrize("name", ["id", "model"])
@pytest.mark.parametrize("path", ENDPOINTS)
def test_chunks_of_several_answers_are_not_kept(scorer, path, name):
    chunks = deepcopy(ANSWERS[path][1])
    holders = [chunk.get("response", chunk) for chunk in chunks]
    for values, keep in VALUES:
        holders[0][name] = values[0]
        for holder in holders[1:]:
            holder[name] = values[-1]
        data = passed_on(scorer, chunks, path, request=ASK)
        ended = "".join(data).replace(" ", "")
        assert '"keep":true' in ended if keep else '"keep":null' in ended
        assert ("chunks of several answers" in ended) is not keep


BESIDE = {
    (CHAT, "message"): {"content": "7"},
    (CHAT, "text"): "7",
    ("/v1/completions", "delta"): {"content": "7"},
    ("/v1/completions", "message"): {"content": "7"},
}


@pytest.mark.parametrize(("path", "name"), BESIDE, ids="-".join)
@pytest.mark.parametrize("place", [0, -1])
def test_a_text_beside_the_one_that_is_scored_is_not_kept(scorer, path, name, place):
    """Some servers write the same text twice, as a message beside the delta."""
    chunks = [chunk for chunk in deepcopy(ANSWERS[path][1]) if "logprobs" in str(chunk)]
    for text, keep in (("7", None), ("51", True), ("", True), (None, True)):
        value = text if name == "text" else {"content": text}
        chunks[place]["choices"][0][name] = value
        (confidence,) = confidences(passed_on(scorer, chunks, path)).values()
        assert confidence["keep"] is keep
        assert (confidence["reason"] == "the tokens spell another text") is not keep


@pytest.mark.parametrize(
    ("path", "name"), [(CHAT, "text"), (CHAT, "delta"), ("/v1/completions", "delta")]
)
def test_nor_in_an_answer_that_comes_whole(scorer, path, name):
    for text, keep in (("7", None), ("51", True), ("", True), (None, True)):
        answer = deepcopy(ANSWERS[path][0])
        answer["choices"][0][name] = text if name == "text" else {"content": text}
        scorer.add_confidence(answer, ASK)
        assert answer["choices"][0]["confidence"]["keep"] is keep


def test_a_response_that_ends_with_another_text_than_was_streamed_is_not_kept(scorer):
    *begun, end = ANSWERS["/v1/responses"][1]
    texts = [begun[1] | {"delta": text} for text in ("5", "1")]
    for deltas, keep in (([], True), (texts, True), (begun[1:] * 2, None), (texts[:1], None)):
        data = passed_on(scorer, [begun[0], *deltas, deepcopy(end)], "/v1/responses")
        confidence = json.loads(data[-2])["response"]["confidence"]
        assert confidence["keep"] is keep
        assert (confidence["reason"] == "the tokens spell another text") is not keep
