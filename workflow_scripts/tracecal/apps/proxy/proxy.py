"""A proxy for an OpenAI-compatible server that adds `confidence` to each answer.

    client -> this proxy, which also requests log-probabilities -> the server
    client <- the answer with `confidence`                      <- the server

Everything else passes through unchanged: other paths, errors, and the client's headers, which are
never logged. A client that leaves ends its request to the server, whose connection is closed.
"""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

import orjson
from aiohttp import ClientConnectionResetError, ClientResponse, web

from tracecal.apps.proxy.confidence import Scorer
from tracecal.apps.proxy.escalation import Escalation, Streamed
from tracecal.apps.proxy.settings import Settings
from tracecal.apps.proxy.stream import Stream, events, whole
from tracecal.apps.proxy.watch_page import Handler, Metrics
from tracecal.apps.proxy.wire import (
    FAILURES,
    FORMS,
    OF_BODY,
    Form,
    Object,
    Server,
    TooLargeError,
    UnreadableError,
    error_response,
    failed,
    json_object,
    message,
    passing,
    read,
    refusal,
    sentence,
    unpacked,
)
from tracecal.io.log import LOGGER

REFUSED = (400, 422)  # perhaps because of the additions: then the request is sent again without


@dataclass
class Proxy:
    """The application. `running` counts the requests that are being answered."""

    scorer: Scorer
    settings: Settings
    escalation: Escalation | None = None
    running: int = 0

    def __post_init__(self) -> None:
        self.server = Server(self.settings.upstream, self.settings)

    def application(self) -> web.Application:
        """Answers every path and method."""
        application = web.Application(middlewares=[self._guarded])
        application.cleanup_ctx.append(self.server.connected)
        counts = None
        if self.escalation is not None:
            application.cleanup_ctx.append(self.escalation.server.connected)
            counts = self.escalation.counts
        if self.scorer.watcher is not None:
            Metrics(self.scorer.watcher, counts).install(application)
        application.router.add_route("*", "/{path:.*}", self.answer)
        return application

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        return refusal(request, self.settings) or await handler(request)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The answer to any request; an error that names its kind where there is none."""
        if self.running >= self.settings.max_requests:
            reason = f"{self.running} requests are being answered, as many as --max-requests allows"
            return error_response(503, reason, {"Retry-After": "1"})
        if not request.raw_path.startswith("/"):
            return error_response(400, "expected a path")
        self.running += 1
        try:
            form = FORMS.get(request.raw_path.partition("?")[0])
            if form is None or request.method != "POST":
                return await self._forward(request)
            return await self._scored(request, form)
        except FAILURES as error:
            if request.transport is None or request.transport.is_closing():
                return web.Response()  # the client left: nobody reads it
            return failed(error)
        finally:
            self.running -= 1

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        """The server's response to the request as it is, neither held in memory."""
        headers = passing(request.headers)
        body = request.content.iter_any() if request.body_exists else None
        response = await self.server.send(request.method, request.raw_path, body, headers)
        return await self._pass_on(request, response)

    async def _scored(self, request: web.Request, form: Form) -> web.StreamResponse:
        """The server's answer with confidence."""
        try:
            content = await self._body(request)
        except TooLargeError as error:
            return error_response(413, f"the request cannot be sent on: {error}")
        except UnreadableError as error:
            return error_response(400, f"the request cannot be read: {error}")
        except TimeoutError:
            return error_response(408, "the request did not arrive in time (--client-timeout)")
        to = request.method, request.raw_path
        headers = passing(request.headers, OF_BODY)
        headers["Accept-Encoding"] = "identity"
        settings = json_object(content)
        additions = settings and form.additions(settings, self.settings.top)
        if not additions:  # the server says what is wrong with it
            return await self._pass_on(request, await self.server.send(*to, content, headers))
        body = orjson.dumps(settings | additions)
        response = await self.server.send(*to, body, headers)
        if response.status in REFUSED:
            response.close()
            LOGGER.warning("the server may have refused log-probabilities (--top): asking without")
            response = await self.server.send(*to, content, headers)
        if response.status != 200 or not _is_stream(response, settings):
            return await self._whole(response, settings, form)
        stream = Stream(self.scorer, settings, form, self.settings.most_bytes)
        return await self._stream(request, response, stream)

    async def _body(self, request: web.Request) -> bytes:
        """The request's body, of bounded size and time."""
        if (request.content_length or 0) > self.settings.most_bytes:
            raise TooLargeError(f"it is larger than {self.settings.max_body:g} MB (--max-body)")
        chunks = unpacked(request.content.iter_any(), request.headers.get("Content-Encoding", ""))
        async with asyncio.timeout(self.settings.client_timeout):
            return await read(chunks, self.settings.most_bytes)

    async def _whole(self, response: ClientResponse, request: Object, form: Form) -> web.Response:
        """The server's answer with confidence."""
        headers = passing(response.headers, OF_BODY)
        async with response:
            most = self.settings.most_bytes
            small = whole(response, self.scorer, request, form, most)
            if self.escalation is not None and response.status == 200:
                content = await self.escalation.whole(small, request, form)
                if content.startswith(b"{"):  # perhaps in the place of what was no JSON
                    headers["Content-Type"] = "application/json"
            else:
                content = await small
        return web.Response(body=content, status=response.status, headers=headers)

    async def _stream(
        self, request: web.Request, response: ClientResponse, stream: Stream
    ) -> web.StreamResponse:
        """The server's event stream with confidence added; where it fails, an error event."""
        headers = passing(response.headers, OF_BODY)
        outgoing = web.StreamResponse(status=response.status, headers=headers)
        escalation = self.escalation
        answer = events(response, stream)
        if escalation is not None:
            answer = Streamed(escalation, stream).events(response)
        # Both are closed, too, where the client has left before the first byte.
        async with response, aclosing(answer):
            await outgoing.prepare(request)
            try:
                async for arrived in answer:
                    await self._write(request, outgoing, b"".join(arrived))
            except ConnectionResetError:
                raise
            except FAILURES as error:
                await self._write(request, outgoing, b"data: " + message(error) + b"\n\n")
        return outgoing

    async def _pass_on(self, request: web.Request, response: ClientResponse) -> web.StreamResponse:
        """The server's response unchanged, chunk by chunk; cut short where the server cuts it."""
        headers = passing(response.headers)
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
            except FAILURES as error:
                LOGGER.warning("%s", sentence(error))
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


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def _is_stream(response: ClientResponse, request: Object) -> bool:
    kind = response.content_type
    return kind == "text/event-stream" or (bool(request.get("stream")) and "json" not in kind)
