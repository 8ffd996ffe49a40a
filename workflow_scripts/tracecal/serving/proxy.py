"""A proxy for an OpenAI-compatible server that adds `confidence` to each answer.

    client -> this proxy, which also requests log-probabilities -> the server
    client <- the answer with `confidence`                      <- the server

All else passes through unchanged: other paths, errors, and the client's headers, which are never
logged. A client that leaves ends its request to the server, whose connection is closed.
"""

import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from urllib.parse import unquote

from aiohttp import ClientConnectionResetError, ClientResponse, web
from multidict import CIMultiDict

from tracecal.io.log import LOGGER
from tracecal.serving.endpoints import Endpoint, endpoint_of
from tracecal.serving.failures import (
    SERVER_FAILURES,
    error_response,
    failure_body,
    failure_response,
    failure_sentence,
)
from tracecal.serving.json_bodies import (
    Object,
    TooLargeError,
    UnreadableError,
    parse_json,
    read_body,
    require_few_values,
    require_plain,
    require_uncompressed,
    scoring_size,
    work_on,
    write_json,
)
from tracecal.serving.proxy_metrics import Handler, Metrics
from tracecal.serving.proxy_settings import ProxySettings
from tracecal.serving.scored_stream import ScoredStream
from tracecal.serving.scorer import Scorer, Unscored
from tracecal.serving.upstream import UpstreamServer
from tracecal.serving.visitors import refusal

# Statuses of a server that may refuse the additions: the request is sent again without them.
REFUSED = (400, 422)
STOP_SECONDS = 5.0  # of a stopped proxy; containers are killed 10 s after they are told to stop
LATE = "the request did not arrive in time (--client-timeout)"
UNREADABLE = "the request's settings of log-probabilities cannot be read"
# Headers of a single connection; `Connection` names more of them.
HOP_BY_HOP = {
    "connection",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
BODY_HEADERS = {"content-length", "content-encoding"}  # which do not fit a changed body


@dataclass
class Proxy:
    """The application; `n_running` counts the requests that are being answered."""

    scorer: Scorer
    settings: ProxySettings
    n_running: int = 0

    def __post_init__(self) -> None:
        self.server = UpstreamServer(self.settings)

    def application(self) -> web.Application:
        """Return the application, which answers every path and method."""
        application = web.Application(middlewares=[self._refuse_visitors])
        application.cleanup_ctx.append(self.server.connected)
        if self.scorer.watcher is not None:
            Metrics(self.scorer.watcher).install(application)
        application.router.add_route("*", "/{path:.*}", self.answer)
        return application

    async def stop(self, application: web.Application) -> None:
        """Let requests end within STOP_SECONDS; whoever then waits for the server gets an error."""
        end = time.monotonic() + STOP_SECONDS
        while self.n_running and time.monotonic() < end:
            await asyncio.sleep(STOP_SECONDS / 100)
        self.server.stop()

    @web.middleware
    async def _refuse_visitors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        return refusal(request, self.settings) or await handler(request)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer any request; with an error that names its kind where that fails."""
        if self.n_running >= self.settings.max_requests:
            reason = (
                f"{self.n_running} requests are being answered, as many as --max-requests allows"
            )
            return error_response(503, reason, {"Retry-After": "1"})
        if not request.raw_path.startswith("/"):
            return error_response(400, "expected a path")
        self.n_running += 1
        try:
            path, query = re.fullmatch(r"([^?#]*)(.*)", request.raw_path, re.DOTALL).groups()
            endpoint = endpoint_of(path)
            if endpoint is None or request.method != "POST":
                return await self._forward(request)
            if unquote(path) != endpoint.path:
                reason = f"servers read the path {path!r} differently: ask {endpoint.path}"
                return error_response(400, reason)
            return await self._answer_with_confidence(request, endpoint, query)
        except SERVER_FAILURES as error:
            if request.transport is None or request.transport.is_closing():
                return web.Response()  # the client left: nobody reads it
            return failure_response(error)
        finally:
            self.n_running -= 1

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        """Pass a request on as it is, and its response; neither is held in memory."""
        headers = headers_to_pass_on(request.headers)
        body = ClientBody(request, self.settings.client_timeout) if request.body_exists else None
        target, pieces = (request.method, request.raw_path), body and aiter(body)
        try:
            response = await self.server.send(*target, pieces, headers)
        except SERVER_FAILURES:
            if body is not None and body.is_stalled:
                return error_response(408, LATE)
            raise
        return await self._pass_on(request, response)

    async def _answer_with_confidence(
        self, request: web.Request, endpoint: Endpoint, query: str
    ) -> web.StreamResponse:
        """Request log-probabilities too, at the plain path, and answer with confidence."""
        try:
            content = await self._read_request(request)
            work = extended_request, content, endpoint, self.settings.top
            body, extended = await work_on(len(content), *work)
        except TooLargeError as error:
            return error_response(413, f"the request cannot be sent on: {error}")
        except UnreadableError as error:
            return error_response(400, f"the request cannot be read: {error}")
        except TimeoutError:
            return error_response(408, LATE)
        target = request.method, f"{endpoint.path}{query}"
        headers = headers_to_pass_on(request.headers, BODY_HEADERS)
        headers["Accept-Encoding"] = "identity"
        if extended is None:  # the server says what is wrong with it
            response = await self.server.send(*target, content, headers)
            unscored = replace(self, scorer=Unscored(UNREADABLE))
            # Nothing is added to the request: all in the answer is the client's.
            plain = replace(endpoint, client_top=lambda request: sys.maxsize)
            return await unscored._answer_of(request, response, body or {}, len(content), plain)
        response = await self.server.send(*target, extended, headers)
        if response.status in REFUSED:
            response.close()
            LOGGER.warning("the server may have refused log-probabilities (--top): asking without")
            response = await self.server.send(*target, content, headers)
        return await self._answer_of(request, response, body, len(content), endpoint)

    async def _answer_of(
        self,
        request: web.Request,
        response: ClientResponse,
        body: Object,
        size: int,
        endpoint: Endpoint,
    ) -> web.StreamResponse:
        """Answer a request of this `body`, of `size` bytes, with the server's answer, scored."""
        require_plain(response)
        # By its type, or else by what the request asks for.
        content_type = response.content_type
        is_asked_for = bool(body.get("stream")) and "json" not in content_type
        is_stream = content_type == "text/event-stream" or is_asked_for
        if not (_is_success(response) and is_stream):
            return await self._answer_whole(response, body, size, endpoint)
        stream = ScoredStream(self.scorer, body, endpoint, self.settings.max_bytes, size)
        return await self._answer_stream(request, response, stream)

    async def _read_request(self, request: web.Request) -> bytes:
        """Return a request's body, within bounds of size and time."""
        max_bytes = self.settings.max_bytes
        if (request.content_length or 0) > max_bytes:
            raise TooLargeError(f"it is larger than {self.settings.max_body:g} MB (--max-body)")
        require_uncompressed(request.headers)
        async with asyncio.timeout(self.settings.client_timeout):
            return await read_body(request.content.iter_any(), max_bytes)

    async def _answer_whole(
        self, response: ClientResponse, body: Object, size: int, endpoint: Endpoint
    ) -> web.Response:
        """Answer a request of this `body` with the server's answer and its confidence."""
        headers = headers_to_pass_on(response.headers, BODY_HEADERS)
        async with response:
            content = await read_body(response.content.iter_any(), self.settings.max_bytes)
            work = self.scorer.scored_body, content, body, endpoint, _is_success(response)
            n_choices = content.count(b"finish_reason")
            content = await work_on(scoring_size(len(content), size, n_choices), *work)
        return web.Response(body=content, status=response.status, headers=headers)

    async def _answer_stream(
        self, request: web.Request, response: ClientResponse, stream: ScoredStream
    ) -> web.StreamResponse:
        """Answer with the server's events and their confidence; with an error event on failure."""
        headers = headers_to_pass_on(response.headers, BODY_HEADERS)
        outgoing = web.StreamResponse(status=response.status, headers=headers)
        answer = stream.events(response)
        # Both are closed, too, where the client has left before the first byte.
        async with response, aclosing(answer):
            await outgoing.prepare(request)
            try:
                async for events in answer:
                    await self._write(request, outgoing, b"".join(events))
            except ConnectionResetError:
                raise
            except SERVER_FAILURES as error:
                await self._write(request, outgoing, b"data: " + failure_body(error) + b"\n\n")
        return outgoing

    async def _pass_on(self, request: web.Request, response: ClientResponse) -> web.StreamResponse:
        """Pass on a response unchanged, chunk by chunk; cut it short where the server does."""
        headers = headers_to_pass_on(response.headers)
        outgoing = web.StreamResponse(
            status=response.status, reason=response.reason, headers=headers
        )
        async with response:
            await outgoing.prepare(request)
            try:
                async for chunk in response.content.iter_any():
                    await self._write(request, outgoing, chunk)
            except ConnectionResetError:
                raise
            except SERVER_FAILURES as error:
                LOGGER.warning("%s", failure_sentence(error))
                _abort(request)
        return outgoing

    async def _write(self, request: web.Request, outgoing: web.StreamResponse, data: bytes) -> None:
        """Write to the client, which may be slow but must not stall."""
        if not data:
            return
        try:
            async with asyncio.timeout(self.settings.timeout):
                await outgoing.write(data)
        except TimeoutError:
            _abort(request)
            raise ClientConnectionResetError("the client stalled") from None


@dataclass
class ClientBody:
    """The pieces of a request's body; `is_stalled` where none came for `timeout` seconds."""

    request: web.Request
    timeout: float
    is_stalled: bool = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self.request.content.iter_any())
        while True:
            try:
                async with asyncio.timeout(self.timeout):
                    piece = await anext(pieces)
            except StopAsyncIteration:
                return
            except TimeoutError:
                self.is_stalled = True
                raise
            yield piece


def extended_request(
    content: bytes, endpoint: Endpoint, top: int
) -> tuple[Object | None, bytes | None]:
    """Return a request's JSON object, and the request with log-probabilities requested, too.

    None where they cannot be read. Raises `TooLargeError` where reading them would take too long.
    """
    require_few_values(content)
    try:
        body = parse_json(content)
    except ValueError:
        return None, None
    if not isinstance(body, dict):
        return None, None
    additions = endpoint.additions(body, top)
    return body, write_json(body | additions) if additions else None


def _is_success(response: ClientResponse) -> bool:
    """Return whether clients take a response as an answer."""
    return response.status // 100 == 2


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def headers_to_pass_on(headers: CIMultiDict, dropped: set[str] = frozenset()) -> CIMultiDict:
    """Return the headers to pass on, repeated ones too, in their order."""
    of_connection = {
        name.strip().lower()
        for value in headers.getall("Connection", ())
        for name in value.split(",")
    }
    excluded = HOP_BY_HOP | of_connection | dropped
    return CIMultiDict(
        (name, value) for name, value in headers.items() if name.lower() not in excluded
    )
