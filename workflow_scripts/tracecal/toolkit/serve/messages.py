"""What the proxy passes on and says itself: headers, and errors as OpenAI's servers write them."""

import orjson
from aiohttp import ClientError, web
from multidict import CIMultiDict

from tracecal.jobs.progress import LOGGER
from tracecal.toolkit.serve.bodies import UnreadableError

# Headers of a single connection; `Connection` names more of them.
HOP = {"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "expect"}
HOP |= {"host", "proxy-authenticate", "proxy-authorization", "proxy-connection"}
OF_BODY = {"content-length", "content-encoding"}  # do not fit a body that was changed here
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
