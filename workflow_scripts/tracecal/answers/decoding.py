"""How an answer was decoded, as far as its request states settings that change probabilities.

`read_request(row, body)` finds the request and what it changes: an empty text where it changes
nothing, None where it leaves that to the server.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tracecal.answers.formats.format import Row

# The settings of a request that can change probabilities, and the values at which they do not. No
# server divides by a temperature of 0: it takes the likeliest token, and states what 1 would give
# (https://github.com/standardcompletions/rfcs/issues/11; vLLM, SGLang and llama.cpp do so).
NEUTRAL: dict[str, tuple[object, ...]] = {
    "temperature": (0, 1),
    "top_p": (1,),
    "top_k": (0, -1),
    "min_p": (0,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "repeat_penalty": (1,),
    "logit_bias": ({}, []),
}
# Where a row keeps the settings of its request.
REQUESTS = ("request", "generation_settings", "sampling_params", "parameters", "generation_config")
REQUESTS += ("model_parameters", "modelParameters", "kwargs")
SENT = ("messages", "prompt", "input", "contents")  # what a request sends to the model
# Where Gemini, TGI, Ollama and SGLang keep the settings within a request; Gemini's in camel case.
NESTED = ("generationConfig", "generation_config", "parameters", "options", "sampling_params")
CAMEL_CASE = {
    "topP": "top_p",
    "topK": "top_k",
    "frequencyPenalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
}
# A row's own `top_k` may be how many tokens it lists.
FLAT = tuple(name for name in NEUTRAL if name != "top_k")


class Request(NamedTuple):
    """The settings of a request, and its `decoding`: the settings that change probabilities."""

    settings: Row
    decoding: str | None

    @property
    def is_greedy(self) -> bool:
        """Whether the likeliest token was taken at each step."""
        return self.settings.get("temperature") == 0


def read_request(row: Row, body: Row) -> Request:
    """Read the request of an answer, or else the settings that its row states.

    >>> read_request({"request": {"temperature": 0.7, "top_p": 1}}, {}).decoding
    'temperature 0.7'
    """
    settings = _request_settings(row, body)
    return Request(settings, stated_decoding(settings))


def _request_settings(row: Row, body: Row) -> Row:
    for name in REQUESTS:
        for source in (row, body):
            request = source.get(name)
            request = request.get("body", request) if isinstance(request, dict) else None
            if isinstance(request, dict) and request:
                return _with_nested(request)
    return {name: source[name] for source in (body, row) for name in FLAT if name in source}


def _with_nested(request: Row) -> Row:
    """Merge the settings that a request nests in an object."""
    nested = [request[name] for name in NESTED if isinstance(request.get(name), dict)]
    settings = {name: value for settings in (request, *nested) for name, value in settings.items()}
    return {CAMEL_CASE.get(name, name): value for name, value in settings.items()}


def stated_decoding(request: Mapping[str, Any]) -> str | None:
    """What a request states that changes probabilities; None where it states no temperature either.

    >>> stated_decoding({"temperature": 0.7, "top_p": 1}), stated_decoding({"temperature": 0})
    ('temperature 0.7', '')
    """
    stated = {name: _number(request[name]) for name in NEUTRAL if request.get(name) is not None}
    changing = [
        name if isinstance(value, dict | list) else f"{name} {value:g}"
        for name, value in stated.items()
        if value is not None and value not in NEUTRAL[name]
    ]
    return ", ".join(changing) or ("" if stated.get("temperature") is not None else None)


def _number(value: Any) -> Any:
    """A setting as a number, tables and text included, or as it is; None where it is neither."""
    if isinstance(value, dict | list):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
