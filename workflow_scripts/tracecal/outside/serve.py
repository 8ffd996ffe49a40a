"""A proxy before an OpenAI-compatible server that adds `confidence` to each answer.

    client -> this proxy, which asks for log-probabilities as well -> the server
    client <- the answer with `confidence`                         <- the server

Everything else passes through as it is: other paths, errors, and the client's headers, which are
never written down.
"""

import argparse
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

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
# Headers of one connection, and those that no longer fit a body that was read or changed here.
HOP = {"host", "connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer"}
OF_BODY = {"content-length", "content-encoding"}
REFUSED = 400  # for what was added, perhaps, so that the request is sent again as it came
SLOW = httpx.Timeout(600.0, connect=10.0)


def run(given: argparse.Namespace) -> None:
    """Serve until stopped, as the command's options say."""
    fitted = load(given.calibrator)
    options = {name: getattr(given, name) for name in ("model", "stop_token", "processed")}
    options["vocabulary"] = given.vocabulary or fitted.fitted_on.vocabulary
    scorer = Scorer(fitted, parse(Reading, options, "options"), given.error_rate)
    if options["vocabulary"] is None:
        LOGGER.warning("without --vocabulary entropies are unknown, and so is every probability")
    # The client library would log addresses, which may hold keys.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    LOGGER.info("http://%s:%d answers for %s", given.host, given.port, given.upstream)
    application = proxy(given.upstream, scorer, given.top)
    uvicorn.run(application, host=given.host, port=given.port, log_level="warning")


def proxy(
    upstream: str,
    scorer: Scorer,
    top: int = 20,
    transport: httpx.AsyncBaseTransport | None = None,
) -> Starlette:
    """The application. `top` log-probabilities are asked for at each token; `transport` reaches
    the server, over the network where null.
    """

    @asynccontextmanager
    async def lifespan(application: Starlette) -> AsyncIterator[None]:
        base = upstream.rstrip("/").removesuffix("/v1")
        async with httpx.AsyncClient(base_url=base, timeout=SLOW, transport=transport) as client:
            application.state.client = client
            yield

    async def answered(request: Request) -> Response:
        form, content = FORMS[request.url.path], await request.body()
        try:
            asked = json.loads(content)
        except ValueError:
            asked = None
        if not isinstance(asked, dict):  # the server says what is wrong with it
            return await forward(request, content)
        body = json.dumps(asked | form.wanted(asked, top)).encode()
        response = await sent(request, body)
        if response.status_code == REFUSED and not isinstance(response, Response):
            await response.aclose()
            LOGGER.warning(
                "%s: the server refuses the log-probabilities; see --top", request.url.path
            )
            response = await sent(request, content)
        if isinstance(response, Response):
            return response
        if asked.get("stream"):
            return streamed(response, scorer.stream(asked, form))
        content = await response.aread()
        await response.aclose()
        try:
            answer = json.loads(content) if response.status_code == 200 else None
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            return Response(content, response.status_code, kept(response.headers))
        scored = scorer.completed(answer, asked, form)
        return Response(json.dumps(scored), headers=kept(response.headers))

    async def forward(request: Request, content: bytes | None = None) -> Response:
        response = await sent(request, await request.body() if content is None else content)
        if isinstance(response, Response):
            return response
        return _passed_on(response)

    def streamed(response: httpx.Response, stream: Stream) -> Response:
        if response.status_code != 200:
            return _passed_on(response)

        async def events() -> AsyncIterator[bytes]:
            try:
                async for line in _lines(response):
                    yield f"{stream.line(line)}\n".encode()
            except httpx.HTTPError as error:
                yield f"data: {json.dumps(_failure(error))}\n\n".encode()
            finally:
                await response.aclose()

        return StreamingResponse(events(), headers=kept(response.headers))

    async def sent(request: Request, content: bytes) -> httpx.Response | Response:
        """What the server answers, its body still to be read; or that it cannot be reached."""
        client: httpx.AsyncClient = request.app.state.client
        headers = kept(request.headers) | {"accept-encoding": "identity"}
        url = httpx.URL(path=request.url.path, query=request.url.query.encode())
        outgoing = client.build_request(request.method, url, content=content, headers=headers)
        try:
            return await client.send(outgoing, stream=True)
        except httpx.HTTPError as error:
            LOGGER.warning("the server cannot be reached (%s)", type(error).__name__)
            return JSONResponse(_failure(error), status_code=502)

    routes = [
        *(Route(path, answered, methods=["POST"]) for path in FORMS),
        Route("/{path:path}", forward, methods=METHODS),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


async def _lines(response: httpx.Response) -> AsyncIterator[str]:
    """A body's lines. They end with a newline alone: texts may hold other separators."""
    rest = b""
    async for piece in response.aiter_bytes():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.decode()
    if rest:
        yield rest.decode()


def _passed_on(response: httpx.Response) -> Response:
    """A server's response as it is, piece by piece."""

    async def pieces() -> AsyncIterator[bytes]:
        try:
            async for piece in response.aiter_bytes():
                yield piece
        finally:
            await response.aclose()

    return StreamingResponse(pieces(), response.status_code, kept(response.headers))


def kept(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that are passed on."""
    return {name: value for name, value in headers.items() if name.lower() not in HOP | OF_BODY}


def _failure(error: Exception) -> dict[str, object]:
    """The kind of a failure, in OpenAI's form; its text might hold an address with a key."""
    return {
        "error": {
            "message": f"the upstream server failed ({type(error).__name__})",
            "type": "upstream_error",
        }
    }
