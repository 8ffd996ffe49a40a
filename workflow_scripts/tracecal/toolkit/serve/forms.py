"""The endpoints of OpenAI-compatible servers, and how each states log-probabilities."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
