"""The forms in which OpenAI-compatible servers answer, whole or streamed, with log-probabilities.

Each says how to ask for log-probabilities, how many of them a client wanted for itself, and how
the pieces of a streamed choice make a whole one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
INCLUDED = "message.output_text.logprobs"


@dataclass(frozen=True)
class Form:
    """One path. `wanted(asked, top)` is the request's part that asks for log-probabilities.

    `shown(asked)` is how many of the likeliest tokens the client asked for, null where it asked
    for no log-probabilities at all; `trimmed` leaves it these. `piece` gives the text and the
    lists of log-probabilities of a streamed choice, `whole` a choice made of all of them.
    """

    wanted: Callable[[Object, int], Object]
    shown: Callable[[Object], int | None]
    trimmed: Callable[[Any, int | None], Any]
    piece: Callable[[Object], tuple[str, Object]] = lambda choice: ("", {})
    whole: Callable[[str, Object], Object] = lambda text, lists: {}


def _choice_trimmed(choice: Object, most: int | None) -> Object:
    """A choice of a chat, whose tokens are listed in `content`, or of a completion."""
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


def _response_trimmed(value: Any, most: int | None) -> Any:
    """Any part of a Responses object or of its events."""
    if isinstance(value, list):
        return [_response_trimmed(one, most) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _response_trimmed(one, most) for key, one in value.items()}
    if isinstance(value.get("logprobs"), list):
        tokens = value["logprobs"] if most is not None else ()
        kept["logprobs"] = [_top(token, most) for token in tokens]
    return kept


FORMS = {
    "/v1/chat/completions": Form(
        lambda asked, top: {
            "logprobs": True,
            "top_logprobs": max(top, _int(asked, "top_logprobs")),
        },
        lambda asked: _int(asked, "top_logprobs") if asked.get("logprobs") else None,
        _choice_trimmed,
        lambda choice: (
            (choice.get("delta") or {}).get("content") or "",
            choice.get("logprobs") or {},
        ),
        lambda text, lists: {"message": {"content": text}, "logprobs": lists},
    ),
    "/v1/completions": Form(
        lambda asked, top: {"logprobs": max(top, _int(asked, "logprobs"))},
        lambda asked: _int(asked, "logprobs") if asked.get("logprobs") is not None else None,
        _choice_trimmed,
        lambda choice: (choice.get("text") or "", choice.get("logprobs") or {}),
        lambda text, lists: {"text": text, "logprobs": lists or None},
    ),
    "/v1/responses": Form(
        lambda asked, top: {
            "include": list(dict.fromkeys([*(asked.get("include") or ()), INCLUDED])),
            "top_logprobs": max(top, _int(asked, "top_logprobs")),
        },
        lambda asked: (
            _int(asked, "top_logprobs") if INCLUDED in (asked.get("include") or ()) else None
        ),
        _response_trimmed,
    ),
}


def _int(asked: Object, name: str) -> int:
    """A number of a request; what is none is the server's to refuse."""
    value = asked.get(name)
    return value if isinstance(value, int) else 0
