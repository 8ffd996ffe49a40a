"""What the proxy passes on and says itself: headers, and errors as OpenAI's servers write them."""

import orjson
from aiohttp import ClientError, web
from multidict import CIMultiDict
from yarl import URL

from tracecal.jobs.progress import LOGGER
from tracecal.toolkit.serve.bodies import UnreadableError
from tracecal.toolkit.serve.forms import FORMS
from tracecal.toolkit.serve.server import is_local
from tracecal.toolkit.serve.settings import Settings

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
