"""A server's whole answer with confidence."""

import asyncio

import orjson
from aiohttp import ClientResponse

from tracecal.serving.proxy.endpoints import Endpoint, mentions_logprobs, trim
from tracecal.serving.proxy.json_bodies import Object, UnreadableError, parse_json, read_body
from tracecal.serving.proxy.scorer import Unscored

LARGE = 2**20  # bytes of an answer that is scored in a thread, as other clients would wait


async def scored_answer(
    response: ClientResponse,
    scorer: Unscored,
    request: Object,
    endpoint: Endpoint,
    max_bytes: int,
) -> bytes:
    """Return the answer of a response with confidence and the requested log-probabilities alone.

    Raises `UnreadableError` where the body exceeds `max_bytes` or cannot be read.
    """
    encoding = response.headers.get("Content-Encoding", "")
    content = await read_body(response.content.iter_any(), encoding, max_bytes)
    arguments = content, response.status, scorer, request, endpoint
    if len(content) < LARGE:
        return score_body(*arguments)
    return await asyncio.to_thread(score_body, *arguments)


def score_body(
    content: bytes, status: int, scorer: Unscored, request: Object, endpoint: Endpoint
) -> bytes:
    """Return an answer's body with confidence; an error's body without log-probabilities.

    Raises `UnreadableError` where the body is no JSON and might hold log-probabilities that the
    client did not request.
    """
    try:
        answer = parse_json(content)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        if status == 200 and endpoint.client_top(request) is None and mentions_logprobs(content):
            raise UnreadableError("its answer is not valid JSON")
        return content
    if status == 200:
        scorer.add_confidence(answer, request)
    elif not mentions_logprobs(content):
        return content
    trim(answer, endpoint.client_top(request))
    return orjson.dumps(answer)
