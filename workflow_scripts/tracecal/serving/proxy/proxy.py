"""A proxy for an OpenAI-compatible server that adds `confidence` to each answer.

    client -> this proxy, which also requests log-probabilities -> the server
    client <- the answer with `confidence`                      <- the server

Everything else passes through unchanged: other paths, errors, and the client's headers, which are
never logged. A client that leaves ends its request to the server, whose connection is closed.
"""

import asyncio
import gc
import logging
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson
from aiohttp import ClientConnectionResetError, ClientResponse, web

from tracecal.answers.reading import Reading
from tracecal.calibrator.schema import load, target_of, vocabulary_for
from tracecal.errors import InputError
from tracecal.io.log import LOGGER
from tracecal.serving.proxy.confidence import Scorer, Unscored
from tracecal.serving.proxy.escalation import Escalation, Streamed
from tracecal.serving.proxy.settings import KEY_ENV, Settings
from tracecal.serving.proxy.stream import Stream, events, whole
from tracecal.serving.proxy.watch_page import Handler, Metrics
from tracecal.serving.proxy.watcher import Watcher
from tracecal.serving.proxy.wire import (
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


# How it is started: in this process, or in several that accept connections from one socket.


STOPPING = 20.0  # seconds that requests may take to end when the proxy is stopped


class Served(NamedTuple):
    """What a process serves: answers of the kind `reading`, with confidence by the calibrator's
    file, kept at the `error_rate` or by the settings' guarantee of a cascade.
    """

    settings: Settings
    calibrator: str
    error_rate: float | None
    reading: Reading


def run(served: Served) -> None:
    """Serve until stopped. Raises `InputError` where a setting is wrong."""
    settings = served.settings
    proxy = _proxy(served)
    listening = _listen(settings)
    _allow_connections(settings)
    host, port = listening.getsockname()[:2]
    LOGGER.info("http://%s:%d answers for %s", host, port, settings.upstream)
    if settings.escalate is not None:
        LOGGER.info("answers that are not kept are escalated to %s", settings.escalate)
    if settings.workers == 1:
        _serve(proxy, listening)
    else:
        _serve_in_processes(served, listening)


def _proxy(served: Served) -> Proxy:
    scorer = _scorer(served)
    return Proxy(scorer, served.settings, escalation(served.settings, scorer))


def escalation(settings: Settings, small: Scorer) -> Escalation | None:
    """To the large server of the settings, if they name one. Raises `InputError` where it cannot
    be decided what to escalate.
    """
    if settings.escalate is None:
        return None
    if small.target is None:
        raise InputError(
            "--escalate needs --error-rate or --promise, which says what answers are kept."
        )
    if (why := small.fitted.why_not(small.target)) is not None:
        raise InputError(f"no answer would be kept, and all be escalated: {why}.")
    if settings.promise and settings.escalate_model != small.fitted.large:
        raise InputError(
            f"--promise {settings.promise} is of escalating to "
            f"{small.fitted.large or 'a model without a name'}, and "
            f"--escalate-model is {settings.escalate_model}: a guarantee is of one large model "
            "('tracecal cascade --large-model' names it as its server does)."
        )
    fitted_on = small.fitted.fitted_on
    if fitted_on.parts is not None:
        raise InputError("the calibrator is of parts of answers: whole answers are escalated.")
    same = Server(settings.escalate, settings).base == Server(settings.upstream, settings).base
    if same and settings.escalate_model in (fitted_on.model, *fitted_on.known_as):
        raise InputError(
            f"--escalate is {settings.escalate_model!r} at --upstream itself: name a larger model."
        )
    large = Unscored()
    if settings.escalate_calibrator is not None:
        fitted = load(settings.escalate_calibrator)
        reading = Reading(vocabulary=fitted.fitted_on.vocabulary, processed=small.reading.processed)
        large = Scorer(fitted, reading, None if settings.promise else small.target)
    return Escalation(settings, large, _key(settings.escalate_key_env))


def _key(variable: str) -> str | None:
    """The large server's key; null where the default variable is not set."""
    key = os.environ.get(variable, "").strip()
    if not key and variable != KEY_ENV:
        raise InputError(f"the environment has no {variable}, named by --escalate-key-env.")
    if not (key.isascii() and key.isprintable()):
        raise InputError(f"{variable} holds characters that no key can have.")
    return key or None


def _scorer(served: Served) -> Scorer:
    settings, fitted = served.settings, load(served.calibrator)
    target = target_of(served.error_rate, settings.promise)
    vocabulary = vocabulary_for(fitted.fitted_on, served.reading.vocabulary)
    if vocabulary is None:
        LOGGER.warning("without --vocabulary entropies are unknown, and so is every probability")
    if served.reading.processed == "auto":
        LOGGER.warning(
            "without --processed only answers to requests that state a temperature of 0 or 1 are "
            "known to have raw probabilities, and no other is kept; vLLM's are raw (--processed no)"
        )
    kept = fitted.fitted_on.reasoning
    of_calibrator = {"vocabulary": vocabulary, "reasoning": "apart" if kept == "none" else kept}
    scorer = Scorer(fitted, served.reading.model_copy(update=of_calibrator), target)
    if settings.watch is None:
        return scorer
    return replace(scorer, watcher=Watcher(fitted, served.error_rate, settings))


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server(
            (settings.host, settings.port), family=family, backlog=settings.max_requests
        )
    except OSError as error:
        raise InputError(
            f"cannot listen on {settings.host}, port {settings.port} ({error.strerror}); choose "
            "others with --host and --port."
        ) from error


def _allow_connections(settings: Settings) -> None:
    """Raise this process's limit of open files to the connections that each request needs."""
    needed = (2 if settings.escalate is None else 3) * settings.max_requests + 200
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < needed:
        LOGGER.warning(
            "only %d files may be open at once (ulimit -n), too few for --max-requests %d",
            allowed,
            settings.max_requests,
        )


def _serve(proxy: Proxy, listening: socket.socket) -> None:
    application = proxy.application()
    if parent := multiprocessing.parent_process():
        application.cleanup_ctx.append(_end_with(parent.sentinel))
    gc.freeze()  # else each look for garbage goes through all that the imports made
    web.run_app(application, sock=listening, print=None, **server_options(proxy.settings))


def server_options(settings: Settings) -> dict[str, Any]:
    """Of the library's server: a client that leaves cancels the handling of its request."""
    return {
        "handler_cancellation": True,
        "keepalive_timeout": settings.client_timeout,
        "auto_decompress": False,
        "access_log": None,
        "logger": _quiet_logger(),
        "shutdown_timeout": STOPPING,
    }


def _quiet_logger() -> logging.Logger:
    """Names the kind of an error only: its text may quote a request, with its keys."""

    def without_content(record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[0]:
            record.msg = f"{record.msg} ({record.exc_info[0].__name__})"
        record.exc_info = record.exc_text = None
        return True

    logger = LOGGER.getChild("serve")
    logger.filters = [without_content]
    return logger


def _end_with(sentinel: int) -> Callable[[web.Application], AsyncIterator[None]]:
    """Stops this process when its parent ends, however that does."""

    async def watching(application: web.Application) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        loop.add_reader(sentinel, signal.raise_signal, signal.SIGTERM)
        yield
        loop.remove_reader(sentinel)

    return watching


def _serve_in_processes(served: Served, listening: socket.socket) -> None:
    """Keep as many processes as the settings' `workers` until this one is told to stop."""
    context = multiprocessing.get_context("spawn")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

    def started() -> multiprocessing.Process:
        process = context.Process(target=_worker, args=(served, listening), daemon=True)
        process.start()
        return process

    processes = [started() for _ in range(served.settings.workers)]
    try:
        while True:
            multiprocessing.connection.wait([process.sentinel for process in processes])
            time.sleep(1)  # a process that cannot start is not to be started without a pause
            ended = [process for process in processes if not process.is_alive()]
            LOGGER.warning("%d process(es) ended and are started again", len(ended))
            processes = [one for one in processes if one not in ended] + [started() for _ in ended]
    except KeyboardInterrupt:
        pass
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(2 * STOPPING)


def _worker(served: Served, listening: socket.socket) -> None:
    logging.basicConfig(format="tracecal: %(message)s", stream=sys.stderr)
    _serve(_proxy(served), listening)
