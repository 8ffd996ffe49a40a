"""A proxy for an OpenAI-compatible server that adds `confidence` to each answer.

    client -> this proxy, which also requests log-probabilities -> the server
    client <- the answer with `confidence`                      <- the server

Everything else passes through unchanged: other paths, errors, and the client's headers, which are
never logged. A client that leaves ends its request to the server, whose connection is closed.
"""

import asyncio
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import dataclass

import orjson
from aiohttp import (
    ClientConnectionError,
    ClientConnectionResetError,
    ClientConnectorError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    web,
)
from multidict import CIMultiDict
from yarl import URL

from tracecal.jobs.progress import LOGGER
from tracecal.toolkit.serve.bodies import (
    TooLargeError,
    UnreadableError,
    json_object,
    mentions_logprobs,
    read,
    unpacked,
)
from tracecal.toolkit.serve.confidence import Scorer
from tracecal.toolkit.serve.events import Events, Stream
from tracecal.toolkit.serve.forms import FORMS, Form, Object, trim
from tracecal.toolkit.serve.messages import (
    FAILURES,
    OF_BODY,
    error_response,
    failed,
    message,
    passing,
    sentence,
)
from tracecal.toolkit.serve.metrics import Metrics
from tracecal.toolkit.serve.settings import Settings

REFUSED = (400, 422)  # perhaps because of the additions: then the request is sent again without
# Servers close idle connections after 5 s or more; one that closes under a request loses it.
IDLE = 2.0
OWN_THREAD = 2**20  # bytes of an answer whose scoring would keep other clients waiting
AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")  # of the library's own


@dataclass
class Proxy:
    """The application. `running` counts the requests that are being answered."""

    scorer: Scorer
    settings: Settings
    running: int = 0

    def application(self) -> web.Application:
        """Answers every path and method."""
        application = web.Application()
        application.cleanup_ctx.append(self._connected)
        if self.scorer.watcher is not None:
            Metrics(self.scorer.watcher).install(application)
        application.router.add_route("*", "/{path:.*}", self.answer)
        return application

    async def _connected(self, application: web.Application) -> AsyncIterator[None]:
        settings = self.settings
        async with ClientSession(
            connector=TCPConnector(limit=0, keepalive_timeout=IDLE),
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(
                None, sock_connect=settings.connect_timeout, sock_read=settings.timeout
            ),
            auto_decompress=False,
            skip_auto_headers=AUTOMATIC,
            proxy=_outer_proxy(settings),
        ) as self.session:
            yield

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
        return await self._pass_on(request, await self._send(request, body, headers))

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
        headers = passing(request.headers, OF_BODY)
        headers["Accept-Encoding"] = "identity"
        settings = json_object(content)
        additions = settings and form.additions(settings, self.settings.top)
        if not additions:  # the server says what is wrong with it
            return await self._pass_on(request, await self._send(request, content, headers))
        response = await self._send(request, orjson.dumps(settings | additions), headers)
        if response.status in REFUSED:
            response.close()
            LOGGER.warning("the server may refuse the log-probabilities: asking without; see --top")
            response = await self._send(request, content, headers)
        if response.status == 200 and _is_stream(response, settings):
            return await self._stream(
                request, response, Stream(self.scorer, settings, form, self.settings.most_bytes)
            )
        return await self._whole(response, settings, form)

    async def _body(self, request: web.Request) -> bytes:
        """The request's body, of bounded size and time."""
        if (request.content_length or 0) > self.settings.most_bytes:
            raise TooLargeError(f"it is larger than {self.settings.max_body:g} MB (--max-body)")
        chunks = unpacked(request.content.iter_any(), request.headers.get("Content-Encoding", ""))
        async with asyncio.timeout(self.settings.client_timeout):
            return await read(chunks, self.settings.most_bytes)

    async def _send(
        self, request: web.Request, body: bytes | AsyncIterator[bytes] | None, headers: CIMultiDict
    ) -> ClientResponse:
        """The server's response; its body is still unread.

        A body at hand is sent once more where the server closed a kept connection meanwhile.
        """
        url = URL(self.settings.base + request.raw_path, encoded=True)
        options = {"data": body, "headers": headers, "allow_redirects": False}
        try:
            return await self.session.request(request.method, url, **options)
        except ClientConnectionError as error:
            if isinstance(error, ClientConnectorError | TimeoutError) or not isinstance(
                body, bytes
            ):
                raise
        return await self.session.request(request.method, url, **options)

    async def _whole(self, response: ClientResponse, request: Object, form: Form) -> web.Response:
        """The server's answer with confidence and only the log-probabilities requested."""
        async with response:
            chunks = unpacked(response.content.iter_any(), _encoding(response))
            content = await read(chunks, self.settings.most_bytes)
        if len(content) < OWN_THREAD:
            content = self._scored_content(content, request, form, response.status)
        else:
            content = await asyncio.to_thread(
                self._scored_content, content, request, form, response.status
            )
        headers = passing(response.headers, OF_BODY)
        return web.Response(body=content, status=response.status, headers=headers)

    def _scored_content(self, content: bytes, request: Object, form: Form, status: int) -> bytes:
        """An answer's bytes with confidence; those of an error without log-probabilities."""
        answer, most = json_object(content), form.client_top(request)
        if answer is None:
            if status == 200 and most is None and mentions_logprobs(content):
                raise UnreadableError("its answer is not valid JSON")
            return content
        if status == 200:
            self.scorer.add(answer, request)
        elif not mentions_logprobs(content):
            return content
        trim(answer, most)
        return orjson.dumps(answer)

    async def _stream(
        self, request: web.Request, response: ClientResponse, stream: Stream
    ) -> web.StreamResponse:
        """The server's event stream with confidence added; where it fails, an error event."""
        headers = passing(response.headers, OF_BODY)
        outgoing = web.StreamResponse(status=response.status, headers=headers)
        events = Events(self.settings.most_bytes)
        async with response:  # closed, too, where the client has left before its first byte
            await outgoing.prepare(request)
            try:
                async for chunk in unpacked(response.content.iter_any(), _encoding(response)):
                    await self._write(
                        request, outgoing, b"".join(map(stream.event, events.feed(chunk)))
                    )
                await self._write(request, outgoing, stream.event(events.rest()))
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


def _outer_proxy(settings: Settings) -> str | None:
    """The HTTP proxy that the environment names for the server; none for one on this machine."""
    url = URL(settings.base)
    if settings.is_local or urllib.request.proxy_bypass(url.host or ""):
        return None
    return urllib.request.getproxies().get(url.scheme)


def _is_stream(response: ClientResponse, request: Object) -> bool:
    kind = response.content_type
    return kind == "text/event-stream" or (bool(request.get("stream")) and "json" not in kind)


def _encoding(response: ClientResponse) -> str:
    return response.headers.get("Content-Encoding", "")
