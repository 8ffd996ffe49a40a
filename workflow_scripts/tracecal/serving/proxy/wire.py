"""OpenAI-compatible servers: their endpoints, bodies and headers, and requests to them."""

import urllib.request
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import orjson
from aiohttp import (
    ClientConnectionError,
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    web,
)
from multidict import CIMultiDict
from yarl import URL

from tracecal.io.log import LOGGER
from tracecal.serving.proxy.settings import Settings

Object = dict[str, Any]
INCLUDED = "message.output_text.logprobs"


@dataclass(frozen=True)
class Form:
    """One endpoint, at `path`.

    `additions(request, top)` are the settings that request log-probabilities; null where the
    request's own are invalid, for the server to refuse. `client_top(request)` is how many of the
    likeliest tokens the client requested, null where it requested no log-probabilities. `piece`
    returns the text of a streamed choice, `join` a whole choice of its text and its lists.
    """

    path: str
    additions: Callable[[Object, int], Object | None]
    client_top: Callable[[Object], int | None]
    piece: Callable[[Object], str] = lambda choice: ""
    join: Callable[[str, Object], Object] = lambda text, lists: {}

    @property
    def has_choices(self) -> bool:
        """Whether answers are lists of choices, which are streamed piece by piece."""
        return self.path != "/v1/responses"


def trim(value: Any, most: int | None) -> None:
    """Shorten all log-probabilities in a JSON value to the `most` likeliest; null: remove them."""
    rest = [value]
    while rest:
        value = rest.pop()
        if isinstance(value, list):
            rest += value
        elif isinstance(value, dict):
            if "logprobs" in value:
                value["logprobs"] = _trimmed(value["logprobs"], most)
            rest += [item for key, item in value.items() if key != "logprobs"]


def _trimmed(logprobs: Any, most: int | None) -> Any:
    """A list of tokens, as in the Responses API, or an object that holds lists."""
    if most is None:
        return [] if isinstance(logprobs, list) else None
    lists = [logprobs]
    if isinstance(logprobs, dict):
        lists = [logprobs.get("content"), logprobs.get("reasoning_content")]
    for token in (one for tokens in lists if isinstance(tokens, list) for one in tokens):
        if isinstance(token, dict) and isinstance(token.get("top_logprobs"), list):
            token["top_logprobs"] = token["top_logprobs"][:most]
    if isinstance(logprobs, dict) and isinstance(tops := logprobs.get("top_logprobs"), list):
        logprobs["top_logprobs"] = [
            dict(list(top.items())[:most]) if isinstance(top, dict) else top for top in tops
        ]
    return logprobs


def _chat_additions(request: Object, top: int) -> Object | None:
    most = _count(request, "top_logprobs")
    return None if most is None else {"logprobs": True, "top_logprobs": max(top, most)}


def _completion_additions(request: Object, top: int) -> Object | None:
    most = _count(request, "logprobs")
    return None if most is None else {"logprobs": max(top, most)}


def _response_additions(request: Object, top: int) -> Object | None:
    most, include = _count(request, "top_logprobs"), request.get("include") or []
    if most is None or not isinstance(include, list):
        return None
    added = [] if INCLUDED in include else [INCLUDED]
    return {"include": [*include, *added], "top_logprobs": max(top, most)}


def _response_top(request: Object) -> int | None:
    return _count(request, "top_logprobs") if INCLUDED in (request.get("include") or ()) else None


def _count(request: Object, name: str) -> int | None:
    """A request's setting, 0 where it has none; null where it is not a count."""
    value = request.get(name)
    if value is None:
        return 0
    return value if isinstance(value, int) and value >= 0 else None


def _delta_text(choice: Object) -> str:
    delta = choice.get("delta")
    return _text(delta.get("content")) if isinstance(delta, dict) else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


OF_PATHS = (
    Form(
        "/v1/chat/completions",
        _chat_additions,
        lambda request: _count(request, "top_logprobs") if request.get("logprobs") else None,
        _delta_text,
        lambda text, lists: {"message": {"content": text}, "logprobs": lists},
    ),
    Form(
        "/v1/completions",
        _completion_additions,
        lambda request: None if request.get("logprobs") is None else _count(request, "logprobs"),
        lambda choice: _text(choice.get("text")),
        lambda text, lists: {"text": text, "logprobs": lists or None},
    ),
    Form("/v1/responses", _response_additions, _response_top),
)
FORMS = {form.path: form for form in OF_PATHS}

# Bodies of requests and answers: unpacked piece by piece, never above a given size.


PACKED = ("gzip", "x-gzip", "deflate")
PIECE = 2**16  # bytes
MOST_MEMBERS = 1000  # of a gzip body, which has one: each copies what is left of a chunk
MANY = 200  # brackets, from which on JSON may be nested deeper than it can be written


class UnreadableError(ValueError):
    """A body cannot be unpacked; the message says why, without any of its content."""


class TooLargeError(UnreadableError):
    """A body is larger than allowed."""


async def unpacked(chunks: AsyncIterable[bytes], encoding: str) -> AsyncIterator[bytes]:
    """The body's bytes without its `Content-Encoding`, in pieces of bounded size.

    Raises `UnreadableError` where they are damaged or the encoding is unknown.
    """
    if encoding.lower() in ("", "identity"):
        async for chunk in chunks:
            yield chunk
        return
    if encoding.lower() not in PACKED:
        raise UnreadableError("its Content-Encoding is none of identity, gzip and deflate")
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 32)  # 32: gzip or zlib, as the body says
    members = 1
    try:
        async for chunk in chunks:
            while chunk:
                if decoder.eof:  # a gzip body is one member or several, and nothing else
                    members, decoder = members + 1, zlib.decompressobj(zlib.MAX_WBITS | 16)
                if members > MOST_MEMBERS:
                    raise UnreadableError(f"it has more than {MOST_MEMBERS} compressed members")
                yield decoder.decompress(chunk, PIECE)
                chunk = decoder.unconsumed_tail or decoder.unused_data
        yield decoder.flush()
    except zlib.error as error:
        raise UnreadableError("its compressed content is damaged") from error
    if not decoder.eof:
        raise UnreadableError("its compressed content is cut short")


async def read(chunks: AsyncIterable[bytes], most: int) -> bytes:
    """All chunks. Raises `TooLargeError` as soon as they exceed `most` bytes."""
    parts, size = [], 0
    async for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise TooLargeError(f"it is larger than {most / 1e6:g} MB (--max-body)")
        parts.append(chunk)
    return b"".join(parts)


def parsed(content: bytes) -> Any:
    """The JSON value in `content`; raises `ValueError` where there is none, or one that is nested
    too deeply to be written again in an answer or a state.
    """
    value = orjson.loads(content)
    if content.count(b"[") + content.count(b"{") > MANY:
        try:
            orjson.dumps([[[value]]])
        except orjson.JSONEncodeError as error:
            raise ValueError("it is nested too deeply") from error
    return value


def json_object(content: bytes) -> dict[str, Any] | None:
    """The JSON object in `content`; null where there is none, or one nested too deeply."""
    try:
        value = parsed(content)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def mentions_logprobs(content: bytes) -> bool:
    """Whether content that cannot be parsed might hold log-probabilities."""
    return b"logprob" in content


# What the proxy passes on and says itself: headers, and errors as OpenAI's servers write them.


# Headers of a single connection; `Connection` names more of them.
HOP = {"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "expect"}
HOP |= {"host", "proxy-authenticate", "proxy-authorization", "proxy-connection"}
OF_BODY = {"content-length", "content-encoding"}  # do not fit a body that was changed here
# Types of a body that a page may send to any server; no API takes them, where uploads have another.
OF_PAGES = ("", "text/plain", "application/x-www-form-urlencoded")
# What a server can do wrong.
FAILURES = (ClientError, TimeoutError, UnreadableError)


class LargeServerError(UnreadableError):
    """The server that answers are escalated to failed; the message is the whole sentence."""


def passing(headers: CIMultiDict, dropped: set[str] = frozenset()) -> CIMultiDict:
    """The headers to pass on, repeated ones too, in their order."""
    named = {
        name.strip().lower()
        for value in headers.getall("Connection", ())
        for name in value.split(",")
    }
    without = HOP | named | dropped
    return CIMultiDict(
        (name, value) for name, value in headers.items() if name.lower() not in without
    )


def refusal(request: web.Request, settings: Settings) -> web.Response | None:
    """What is said to a request that a page of another site may have made a browser send, which
    would spend the user's keys or read what is watched; null where there is nothing to say.

    Its `Origin` tells, or its `Host` where the site's name was pointed at this machine; and no page
    sends JSON unasked.
    """
    host = _name_of(f"//{request.host}")
    own = (request.transport.get_extra_info("sockname") or ("",))[0] if request.transport else ""
    if not (host and (host == own or host in settings.allow_host or is_local(host))):
        return error_response(403, f"it is not known as {request.host!r} (--allow-host)")
    origin = request.headers.get("Origin", "").lower()
    same = not origin or origin.partition("://")[2] == request.host.lower()
    if not (same or origin in settings.allow_origin):
        return error_response(403, f"the page {origin!r} may not ask it (--allow-origin)")
    kind = request.content_type if "Content-Type" in request.headers else ""
    wanted = kind == "application/json" if request.path in FORMS else kind not in OF_PAGES
    if request.method == "POST" and request.body_exists and not wanted:
        return error_response(415, "expected JSON, with 'Content-Type: application/json'")
    return None


def _name_of(address: str) -> str | None:
    try:
        return URL(address).host
    except ValueError:
        return None


def failed(error: Exception) -> web.Response:
    LOGGER.warning("%s", sentence(error))
    status = 504 if isinstance(error, TimeoutError) else 502
    return web.Response(body=message(error), status=status, content_type="application/json")


def sentence(error: Exception, which: str = "the upstream server") -> str:
    """What failed; an error's own text might hold an address with a key, except for ours."""
    if isinstance(error, LargeServerError):
        return str(error)
    reason = str(error) if isinstance(error, UnreadableError) else type(error).__name__
    return f"{which} failed ({reason})"


def message(error: Exception) -> bytes:
    return _as_error(sentence(error), "upstream_error")


def error_response(status: int, reason: str, headers: dict[str, str] | None = None) -> web.Response:
    body = _as_error(reason, "proxy_error")
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")


def _as_error(reason: str, kind: str) -> bytes:
    """An error as OpenAI's servers write it."""
    return orjson.dumps({"error": {"message": reason, "type": kind}})


# A server behind the proxy: its address, connections of its own, and requests to it.


# Servers close idle connections after 5 s or more; one that closes under a request loses it.
IDLE = 2.0
AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")  # of the library's own


@dataclass
class Server:
    """A server of the OpenAI kind. It keeps no cookie, and follows no redirect."""

    address: str
    settings: Settings

    @property
    def base(self) -> str:
        """The server's address, to which a request's path is appended."""
        return self.address.rstrip("/").removesuffix("/v1")

    async def connected(self, application: web.Application) -> AsyncIterator[None]:
        """Holds its connections while the application runs."""
        settings = self.settings
        async with ClientSession(
            connector=TCPConnector(limit=0, keepalive_timeout=IDLE),
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(
                None, sock_connect=settings.connect_timeout, sock_read=settings.timeout
            ),
            auto_decompress=False,
            skip_auto_headers=AUTOMATIC,
            proxy=_outer_proxy(URL(self.base)),
        ) as self.session:
            yield

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | AsyncIterator[bytes] | None,
        headers: CIMultiDict,
    ) -> ClientResponse:
        """The server's response; its body is still unread.

        A body at hand is sent once more where the server closed a kept connection meanwhile.
        """
        url = URL(self.base + path, encoded=True)
        options = {"data": body, "headers": headers, "allow_redirects": False}
        try:
            return await self.session.request(method, url, **options)
        except ClientConnectionError as error:
            if isinstance(error, ClientConnectorError | TimeoutError) or not isinstance(
                body, bytes
            ):
                raise
        return await self.session.request(method, url, **options)


def _outer_proxy(url: URL) -> str | None:
    """The HTTP proxy that the environment names for a server; none for one on this machine."""
    host = url.host or ""
    if is_local(host) or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(url.scheme)


def is_local(host: str) -> bool:
    """Whether a name or address is that of this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
