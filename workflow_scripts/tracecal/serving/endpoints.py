"""The endpoints of OpenAI-compatible servers whose answers get confidence.

1. `ENDPOINTS[path].additions` are the settings that request log-probabilities.
2. `client_top` is how many of them the client itself requested.
3. `trim` removes the others from the answer, and `drop_confidence` a server's own `confidence`.
4. `endpoint_of` is the endpoint that a path names, however it is spelled.
"""

import posixpath
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tracecal.serving.json_bodies import Object, UnreadableError

INCLUDE_LOGPROBS = "message.output_text.logprobs"
# Below which a client finds a confidence, as in the answer itself.
CONFIDENCE_HOLDERS = {"response", "choices", "delta", "message"}
# What some servers ignore in a path: a query or an end that was encoded, parameters of a segment,
# what is no letter or digit, and then dots at a segment's end.
IGNORED = re.compile(r"[?#\0].*|;[^/]*|[^a-z0-9/.]", re.DOTALL)
LAST_DOTS = re.compile(r"(?<=[a-z0-9])\.+(?=/|$)")


@dataclass(frozen=True)
class Endpoint:
    """One endpoint, at `path`.

    `additions(request, top)` are the settings that request log-probabilities; None where the
    request's own are invalid, for the server to refuse. `client_top(request)` is how many of the
    likeliest tokens the client requested; None where it requested no log-probabilities.
    """

    path: str
    additions: Callable[[Object, int], Object | None]
    client_top: Callable[[Object], int | None]

    @property
    def is_chat(self) -> bool:
        """Whether streamed pieces of choices are deltas of a message."""
        return self.path == "/v1/chat/completions"


def trim(value: Any, top: int | None) -> None:
    """Cut all log-probabilities in a JSON value to the `top` likeliest; None removes them."""
    values = [value]
    while values:
        value = values.pop()
        if isinstance(value, list):
            values += value
        elif isinstance(value, dict):
            if "logprobs" in value:
                value["logprobs"] = _trimmed(value["logprobs"], top)
            values += [item for key, item in value.items() if key != "logprobs"]


def _trimmed(logprobs: Any, top: int | None) -> Any:
    """Trim a list of tokens, as in the Responses API, or an object that holds lists."""
    if top is None:
        return [] if isinstance(logprobs, list) else None
    lists = [logprobs]
    if isinstance(logprobs, dict):
        lists = [logprobs.get("content"), logprobs.get("reasoning_content")]
    for token in (token for tokens in lists if isinstance(tokens, list) for token in tokens):
        if isinstance(token, dict) and isinstance(token.get("top_logprobs"), list):
            token["top_logprobs"] = token["top_logprobs"][:top]
    if isinstance(logprobs, dict) and isinstance(steps := logprobs.get("top_logprobs"), list):
        logprobs["top_logprobs"] = [
            dict(list(step.items())[:top]) if isinstance(step, dict) else step for step in steps
        ]
    return logprobs


def drop_confidence(value: Any) -> None:
    """Remove the `confidence` that a server itself wrote: it would pass for the proxy's.

    Some clients read keys in any case.
    """
    for holder in value if isinstance(value, list) else [value]:
        if isinstance(holder, dict):
            for key in [key for key in holder if key.lower() == "confidence"]:
                del holder[key]
            for name in CONFIDENCE_HOLDERS & holder.keys():
                drop_confidence(holder[name])


def may_need_changes(content: bytes) -> bool:
    """Return whether JSON might hold log-probabilities or a confidence, perhaps escaped."""
    return any(part in content.lower() for part in (b"logprob", b"confidence", rb"\u"))


def require_opaque(content: bytes, top: int | None) -> bytes:
    """Return content that is no JSON to us.

    Raises `UnreadableError` where a more lenient reader might find in it a confidence, or
    log-probabilities where the client requested none (`top`).
    """
    try:
        is_text = "\0" not in content.decode()
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        raise UnreadableError("its answer is not UTF-8")
    is_like_json = content.lstrip()[:1] in (b"{", b"[") or b"data:" in content
    if (
        b"confidence" in content.lower()
        or (top is None and b"logprob" in content)
        or (is_like_json and rb"\u" in content)
    ):
        raise UnreadableError("its answer is not valid JSON")
    return content


def _chat_additions(request: Object, top: int) -> Object | None:
    requested = _count(request, "top_logprobs")
    if requested is None:
        return None
    return {"logprobs": True, "top_logprobs": max(top, requested)}


def _chat_top(request: Object) -> int | None:
    return _count(request, "top_logprobs") if request.get("logprobs") else None


def _completion_additions(request: Object, top: int) -> Object | None:
    requested = _count(request, "logprobs")
    return None if requested is None else {"logprobs": max(top, requested)}


def _completion_top(request: Object) -> int | None:
    return None if request.get("logprobs") is None else _count(request, "logprobs")


def _response_additions(request: Object, top: int) -> Object | None:
    requested, include = _count(request, "top_logprobs"), request.get("include") or []
    if requested is None or not isinstance(include, list):
        return None
    missing = [] if INCLUDE_LOGPROBS in include else [INCLUDE_LOGPROBS]
    return {"include": [*include, *missing], "top_logprobs": max(top, requested)}


def _response_top(request: Object) -> int | None:
    is_included = INCLUDE_LOGPROBS in (request.get("include") or ())
    return _count(request, "top_logprobs") if is_included else None


def _count(request: Object, name: str) -> int | None:
    """Return a request's setting, 0 where it has none; None where it is not a count."""
    value = request.get(name)
    if value is None:
        return 0
    return value if isinstance(value, int) and value >= 0 else None


CHAT = Endpoint("/v1/chat/completions", _chat_additions, _chat_top)
COMPLETIONS = Endpoint("/v1/completions", _completion_additions, _completion_top)
RESPONSES = Endpoint("/v1/responses", _response_additions, _response_top)
ENDPOINTS = {endpoint.path: endpoint for endpoint in (CHAT, COMPLETIONS, RESPONSES)}


def endpoint_of(path: str) -> Endpoint | None:
    """Return the endpoint that the most lenient of servers reads in a path.

    Some decode it several times, or take what follows two slashes at its start for a host.

    >>> endpoint_of("/V1//chat%2Fcomplet%69ons;a=b/x/%252e%252e/. ").path
    '/v1/chat/completions'
    """
    while (decoded := unquote(path)) != path:
        path = decoded
    path = unicodedata.normalize("NFKC", path).casefold().replace("\\", "/")
    plain = posixpath.normpath(LAST_DOTS.sub("", IGNORED.sub("", path)))
    plain = "/" + plain.lstrip("/")
    behind_host = plain.partition("/")[2].partition("/")[2] if path.startswith("//") else ""
    return ENDPOINTS.get(plain) or ENDPOINTS.get(f"/{behind_host}")
