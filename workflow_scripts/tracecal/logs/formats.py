"""Which format a row is of, and the answer it holds."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from tracecal.logs.columns import TRACE, read_columns
from tracecal.logs.engines import read_llama_cpp, read_ollama, read_sglang
from tracecal.logs.evaluations import read_inspect, read_lm_eval, verdict
from tracecal.logs.openai import read_chat, read_completion, read_response
from tracecal.logs.options import Reading
from tracecal.logs.record import Record
from tracecal.logs.steps import WrongRow
from tracecal.logs.trace import Given, record

Row = dict[str, Any]


def _choice(body: Row) -> Row:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _alone(read: Callable[[Row], Given]) -> Callable[[Row, Reading], Given]:
    return lambda body, reading: read(body)


# What tells a format from the others, and its reader; in this order.
FORMATS: dict[str, tuple[Callable[[Row], bool], Callable[[Row, Reading], Given]]] = {
    "inspect": (
        lambda body: isinstance(body.get("output"), dict) and "choices" in body["output"],
        read_inspect,
    ),
    "lm_eval": (lambda body: "resps" in body and "doc_id" in body, read_lm_eval),
    "openai_chat": (lambda body: "message" in _choice(body), _alone(read_chat)),
    "openai_completions": (lambda body: "text" in _choice(body), _alone(read_completion)),
    "openai_responses": (lambda body: isinstance(body.get("output"), list), _alone(read_response)),
    "llama_cpp": (
        lambda body: "completion_probabilities" in body or "generation_settings" in body,
        _alone(read_llama_cpp),
    ),
    "sglang": (lambda body: isinstance(body.get("meta_info"), dict), _alone(read_sglang)),
    "ollama": (
        lambda body: "done" in body or (isinstance(body.get("logprobs"), list) and _objects(body)),
        _alone(read_ollama),
    ),
    "columns": (
        lambda body: any(name in body for name in (*TRACE, "token_ids", "answer", "text")),
        _alone(read_columns),
    ),
}
# The settings of a request that can bend probabilities, and the values at which they do not.
NEUTRAL: dict[str, tuple[object, ...]] = {
    "temperature": (1,),
    "top_p": (1,),
    "top_k": (0, -1),
    "min_p": (0,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "repeat_penalty": (1,),
    "logit_bias": ({}, []),
}
IDS = ("custom_id", "example_id", "id", "doc_id")


def _objects(body: Row) -> bool:
    """Whether `logprobs` are Ollama's objects, not numbers."""
    return all(isinstance(one, dict) for one in body["logprobs"]) and bool(body["logprobs"])


def read_row(row: Any, reading: Reading) -> Record:
    """The answer of one row: an object of a format as it is, or as `response` of another.

    Raises `WrongRow`.
    """
    if not isinstance(row, dict):
        raise WrongRow("it is no JSON object")
    if row.get("error"):
        raise WrongRow("the request failed")
    body = _body(row)
    name = _name(body, reading)
    request = _request(row, body)
    if request.get("temperature") == 0:
        reading = reading.model_copy(update={"greedy": True})
    try:
        given = FORMATS[name][1](body, reading)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise WrongRow(f"as {name}, {where}: {first['msg']}") from error
    if given.processed == "unknown" and request and _neutral(request):
        given = replace(given, processed="no")
    if (label := _label(row, body, reading)) is not None:
        given = replace(given, correct=label)
    if isinstance(row.get("group_id"), str | int):
        given = replace(given, group_id=str(row["group_id"]))
    read = record(_id(row, body, reading), given, reading)
    _require_text(read)
    return read


def _require_text(read: Record) -> None:
    texts = [text for text in vars(read).values() if isinstance(text, str)]
    try:
        "".join([*texts, *(read.tokens or ())]).encode()
    except UnicodeEncodeError as error:
        raise WrongRow("a text of it holds half a character (a lone surrogate)") from error


def _body(row: Row) -> Row:
    """The answer itself, without what a batch's file puts around it."""
    response = row.get("response")
    if not isinstance(response, dict):
        return row
    if "body" not in response:
        return response
    status = response.get("status_code")
    if status not in (None, 200) or not isinstance(response["body"], dict):
        raise WrongRow(f"the request failed with status {status}")
    return response["body"]


def _request(row: Row, body: Row) -> Row:
    """What was asked for, where a file keeps it beside the answer."""
    asked = row.get("request") or body.get("generation_settings") or {}
    asked = asked.get("body", asked) if isinstance(asked, dict) else {}
    return asked if isinstance(asked, dict) else {}


def _neutral(request: Row) -> bool:
    """Whether nothing in a request bends the probabilities, so that processed ones are raw."""
    stated = {name: request.get(name) for name in NEUTRAL}
    return stated["temperature"] == 1 and all(
        value is None or value in NEUTRAL[name] for name, value in stated.items()
    )


def _name(body: Row, reading: Reading) -> str:
    if reading.format != "auto":
        return reading.format
    for name, (recognised, _) in FORMATS.items():
        if recognised(body):
            return name
    raise WrongRow(f"it is of no known format; known are {', '.join(FORMATS)}")


def _id(row: Row, body: Row, reading: Reading) -> str:
    if reading.id is not None:
        value = find(row, reading.id)
    else:
        named = (one.get(key) for one in (row, body) for key in IDS)
        value = next((value for value in named if value not in ("", None)), None)
    if not isinstance(value, str | int) or value == "":
        raise WrongRow(f"it has no id; give one as {reading.id or ', '.join(IDS)}")
    epoch = body.get("epoch")
    return str(value) if epoch in (None, 1) else f"{value}#epoch-{epoch}"


def _label(row: Row, body: Row, reading: Reading) -> bool | None:
    """The verdict where `label` names it, or beside the answer; null where nothing says it."""
    if reading.label is None:
        return verdict(row.get("correct")) if row is not body else None
    found = find(row, reading.label)
    return verdict(find(body, reading.label) if found is None else found)


def find(row: Any, path: str) -> Any:
    """What lies at a path such as 'scores.match.value'; null where nothing does."""
    for key in path.split("."):
        row = row.get(key) if isinstance(row, dict) else None
    return row
