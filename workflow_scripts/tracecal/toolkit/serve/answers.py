"""A server's answer with confidence: read whole, or event by event."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import orjson
from aiohttp import ClientResponse

from tracecal.toolkit.serve.bodies import (
    UnreadableError,
    json_object,
    mentions_logprobs,
    read,
    unpacked,
)
from tracecal.toolkit.serve.confidence import Scorer
from tracecal.toolkit.serve.events import Events, Stream
from tracecal.toolkit.serve.forms import Form, Object, trim

OWN_THREAD = 2**20  # bytes of an answer whose scoring would keep other clients waiting


async def whole(
    response: ClientResponse, scorer: Scorer, request: Object, form: Form, most: int
) -> bytes:
    """The answer with confidence and only the log-probabilities requested; at most `most` bytes."""
    content = await read(_content(response), most)
    given = content, scorer, request, form, response.status
    if len(content) < OWN_THREAD:
        return _scored(*given)
    return await asyncio.to_thread(_scored, *given)


def _scored(content: bytes, scorer: Scorer, request: Object, form: Form, status: int) -> bytes:
    """An answer's bytes with confidence; those of an error without log-probabilities."""
    answer, most = json_object(content), form.client_top(request)
    if answer is None:
        if status == 200 and most is None and mentions_logprobs(content):
            raise UnreadableError("its answer is not valid JSON")
        return content
    if status == 200:
        scorer.add(answer, request)
    elif not mentions_logprobs(content):
        return content
    trim(answer, most)
    return orjson.dumps(answer)


async def events(response: ClientResponse, stream: Stream) -> AsyncGenerator[list[bytes], None]:
    """The events of a server's response with confidence, as many at once as have arrived."""
    cut = Events(stream.most)
    async for chunk in _content(response):
        yield [await _event(event, stream) for event in cut.feed(chunk)]
    yield [await _event(cut.rest(), stream)]


async def _event(event: bytes, stream: Stream) -> bytes:
    if len(event) < OWN_THREAD:
        return stream.event(event)
    return await asyncio.to_thread(stream.event, event)


def _content(response: ClientResponse) -> AsyncIterator[bytes]:
    return unpacked(response.content.iter_any(), response.headers.get("Content-Encoding", ""))
