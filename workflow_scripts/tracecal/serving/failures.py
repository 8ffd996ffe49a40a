"""What the proxy says when something fails: errors as OpenAI's servers write them."""

import orjson
from aiohttp import ClientError, web

from tracecal.io.log import LOGGER
from tracecal.serving.json_bodies import UnreadableError

# What a server can do wrong.
SERVER_FAILURES = (ClientError, TimeoutError, UnreadableError)


def failure_sentence(error: Exception) -> str:
    """Say what failed. A library's message may hold an address with a key, so only ours is used."""
    reason = str(error) if isinstance(error, UnreadableError) else type(error).__name__
    return f"the upstream server failed ({reason})"


def failure_body(error: Exception) -> bytes:
    """Return the JSON of a server's failure."""
    return _error_body(failure_sentence(error), "upstream_error")


def failure_response(error: Exception) -> web.Response:
    """Log a server's failure and return the client's response."""
    LOGGER.warning("%s", failure_sentence(error))
    status = 504 if isinstance(error, TimeoutError) else 502
    return web.Response(body=failure_body(error), status=status, content_type="application/json")


def error_response(status: int, reason: str, headers: dict[str, str] | None = None) -> web.Response:
    """Return the response to a request that the proxy refuses."""
    body = _error_body(reason, "proxy_error")
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")


def _error_body(message: str, kind: str) -> bytes:
    return orjson.dumps({"error": {"message": message, "type": kind}})
