"""A proxy for an OpenAI-compatible server that adds `confidence` to each answer.

    client -> this proxy, which also requests log-probabilities -> the server
    client <- the answer with `confidence`                      <- the server

Everything else passes through unchanged: other paths, errors, and the client's headers, which are
never logged.
"""

import argparse
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2 as httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tracecal.logs.options import Reading
from tracecal.outside.confidence import Scorer, Stream
from tracecal.outside.fitted import load
from tracecal.outside.forms import FORMS
from tracecal.progress import LOGGER
from tracecal.schema import parse

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]
# Headers of a single connection, and those that do not fit a body that was decoded or changed here.
HOP = {"host", "connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer"}
OF_BODY = {"content-length", "content-encoding"}
REFUSED = 400  # perhaps because of the additions: then the request is sent again without them
SLOW = httpx.Timeout(600.0, connect=10.0)


def run(args: argparse.Namespace) -> None:
    """Serve until stopped, with the command's options."""
    fitted = load(args.calibrator)
    options = {name: getattr(args, name) for name in ("model", "stop_token", "processed")}
    options["vocabulary"] = args.vocabulary or fitted.fitted_on.vocabulary
    scorer = Scorer(fitted, parse(Reading, options, "options"), args.error_rate)
    if options["vocabulary"] is None:
        LOGGER.warning("without --vocabulary entropies are unknown, and so is every probability")
    # The client library would log addresses, which may contain keys.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    LOGGER.info("http://%s:%d answers for %s", args.host, args.port, args.upstream)
    application = proxy(args.upstream, scorer, args.top)
    uvicorn.run(application, host=args.host, port=args.port, log_level="warning")


def proxy(
    upstream: str,
    scorer: Scorer,
    top: int = 20,
    transport: httpx.AsyncBaseTransport | None = None,
) -> Starlette:
    """The application. It requests `top` log-probabilities per token; `transport` connects to the
    server, null: over the network.
    """

    @asynccontextmanager
    async def lifespan(application: Starlette) -> AsyncIterator[None]:
        base = upstream.rstrip("/").removesuffix("/v1")
        async with httpx.AsyncClient(base_url=base, timeout=SLOW, transport=transport) as client:
            application.state.client = client
            yield

    async def add_confidence(request: Request) -> Response:
        form, content = FORMS[request.url.path], await request.body()
        settings = _json_object(content)
        if settings is None:  # the server says what is wrong with it
            return await forward(request)
        body = json.dumps(settings | form.additions(settings, top)).encode()
        response = await _send(request, body)
        if response.status_code == REFUSED:
            await response.aclose()
            LOGGER.warning(
                "%s: the server refuses the log-probabilities; see --top", request.url.path
            )
            response = await _send(request, content)
        if settings.get("stream"):
            return _stream(response, Stream(scorer, settings, form))
        content = await response.aread()
        await response.aclose()
        answer = _json_object(content) if response.status_code == 200 else None
        if answer is None:
            return Response(content, response.status_code, _passing(response.headers))
        scored = scorer.complete(answer, settings, form)
        return Response(json.dumps(scored), headers=_passing(response.headers))

    async def forward(request: Request) -> Response:
        return _pass_on(await _send(request, await request.body()))

    async def unreachable(request: Request, error: httpx.HTTPError) -> Response:
        LOGGER.warning("the server cannot be reached (%s)", type(error).__name__)
        return JSONResponse(_failure(error), status_code=502)

    routes = [
        *(Route(path, add_confidence, methods=["POST"]) for path in FORMS),
        Route("/{path:path}", forward, methods=METHODS),
    ]
    handlers = {httpx.HTTPError: unreachable}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)


def _json_object(content: bytes) -> dict[str, Any] | None:
    """The JSON object in `content`; null where there is none."""
    try:
        value = json.loads(content)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


async def _send(request: Request, content: bytes) -> httpx.Response:
    """The server's response to a request with this body; its own body is still unread."""
    client: httpx.AsyncClient = request.app.state.client
    headers = _passing(request.headers) | {"accept-encoding": "identity"}
    url = httpx.URL(path=request.url.path, query=request.url.query.encode())
    outgoing = client.build_request(request.method, url, content=content, headers=headers)
    return await client.send(outgoing, stream=True)


def _stream(response: httpx.Response, stream: Stream) -> Response:
    """The server's event stream with confidence added; an error response unchanged."""
    if response.status_code != 200:
        return _pass_on(response)

    async def events() -> AsyncIterator[bytes]:
        try:
            async for line in _lines(response):
                yield f"{stream.line(line)}\n".encode()
        except httpx.HTTPError as error:
            yield f"data: {json.dumps(_failure(error))}\n\n".encode()
        finally:
            await response.aclose()

    return StreamingResponse(events(), headers=_passing(response.headers))


async def _lines(response: httpx.Response) -> AsyncIterator[str]:
    """A body's lines. Only a newline ends one: texts may hold other line separators."""
    rest = b""
    async for chunk in response.aiter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode()
    if rest:
        yield rest.decode()


def _pass_on(response: httpx.Response) -> Response:
    """The server's response unchanged, chunk by chunk."""

    async def chunks() -> AsyncIterator[bytes]:
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        finally:
            await response.aclose()

    return StreamingResponse(chunks(), response.status_code, _passing(response.headers))


def _passing(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers to pass on."""
    return {name: value for name, value in headers.items() if name.lower() not in HOP | OF_BODY}


def _failure(error: Exception) -> dict[str, object]:
    """The kind of a failure, as an OpenAI error; its text might contain an address with a key."""
    return {
        "error": {
            "message": f"the upstream server failed ({type(error).__name__})",
            "type": "upstream_error",
        }
    }
