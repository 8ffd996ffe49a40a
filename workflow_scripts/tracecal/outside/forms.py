"""The endpoints of OpenAI-compatible servers, and how each states log-probabilities.

Each says how to request log-probabilities, how many of them the client requested itself, and how
to join the chunks of a streamed choice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
INCLUDED = "message.output_text.logprobs"


@dataclass(frozen=True)
class Form:
    """One endpoint. `additions(request, top)` are the settings that request log-probabilities.

    `client_top(request)` is how many of the likeliest tokens the client requested, null where it
    requested no log-probabilities; `trim` removes the others. `piece` returns a streamed chunk's
    text and its lists of log-probabilities, `join` a choice made of all of them.
    """

    additions: Callable[[Object, int], Object]
    client_top: Callable[[Object], int | None]
    trim: Callable[[Any, int | None], Any]
    piece: Callable[[Object], tuple[str, Object]] = lambda choice: ("", {})
    join: Callable[[str, Object], Object] = lambda text, lists: {}


def _trim_choice(choice: Object, most: int | None) -> Object:
    """A choice of a chat, whose `content` lists the tokens, or of a legacy completion."""
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict):
        return choice
    if most is None:
        return choice | {"logprobs": None}
    if "content" in logprobs:
        kept = {"content": [_top(token, most) for token in logprobs["content"] or ()]}
    else:
        tops = logprobs.get("top_logprobs") or ()
        kept = {"top_logprobs": [dict(list((top or {}).items())[:most]) for top in tops]}
    return choice | {"logprobs": logprobs | kept}


def _top(token: Object, most: int) -> Object:
    return token | {"top_logprobs": (token.get("top_logprobs") or [])[:most]}


def _trim_response(value: Any, most: int | None) -> Any:
    """Any part of a Responses object or of its events."""
    if isinstance(value, list):
        return [_trim_response(item, most) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _trim_response(item, most) for key, item in value.items()}
    if isinstance(value.get("logprobs"), list):
        tokens = value["logprobs"] if most is not None else ()
        kept["logprobs"] = [_top(token, most) for token in tokens]
    return kept


FORMS = {
    "/v1/chat/completions": Form(
        lambda request, top: {
            "logprobs": True,
            "top_logprobs": max(top, _int(request, "top_logprobs")),
        },
        lambda request: _int(request, "top_logprobs") if request.get("logprobs") else None,
        _trim_choice,
        lambda choice: (
            (choice.get("delta") or {}).get("content") or "",
            choice.get("logprobs") or {},
        ),
        lambda text, lists: {"message": {"content": text}, "logprobs": lists},
    ),
    "/v1/completions": Form(
        lambda request, top: {"logprobs": max(top, _int(request, "logprobs"))},
        lambda request: _int(request, "logprobs") if request.get("logprobs") is not None else None,
        _trim_choice,
        lambda choice: (choice.get("text") or "", choice.get("logprobs") or {}),
        lambda text, lists: {"text": text, "logprobs": lists or None},
    ),
    "/v1/responses": Form(
        lambda request, top: {
            "include": list(dict.fromkeys([*(request.get("include") or ()), INCLUDED])),
            "top_logprobs": max(top, _int(request, "top_logprobs")),
        },
        lambda request: (
            _int(request, "top_logprobs") if INCLUDED in (request.get("include") or ()) else None
        ),
        _trim_response,
    ),
}


def _int(request: Object, name: str) -> int:
    """An integer setting of a request, else 0: the server itself refuses an invalid value."""
    value = request.get(name)
    return value if isinstance(value, int) else 0
