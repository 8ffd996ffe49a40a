"""The format of a row, and the answer that it holds."""

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
from tracecal.logs.trace import RawAnswer, record

Row = dict[str, Any]


def _choice(body: Row) -> Row:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _simple(read: Callable[[Row], RawAnswer]) -> Callable[[Row, Reading], RawAnswer]:
    return lambda body, reading: read(body)


# How to recognise each format, tried in this order, and its reader.
FORMATS: dict[str, tuple[Callable[[Row], bool], Callable[[Row, Reading], RawAnswer]]] = {
    "inspect": (
        lambda body: isinstance(body.get("output"), dict) and "choices" in body["output"],
        read_inspect,
    ),
    "lm_eval": (lambda body: "resps" in body and "doc_id" in body, read_lm_eval),
    "openai_chat": (lambda body: "message" in _choice(body), _simple(read_chat)),
    "openai_completions": (lambda body: "text" in _choice(body), _simple(read_completion)),
    "openai_responses": (lambda body: isinstance(body.get("output"), list), _simple(read_response)),
    "llama_cpp": (
        lambda body: "completion_probabilities" in body or "generation_settings" in body,
        _simple(read_llama_cpp),
    ),
    "sglang": (lambda body: isinstance(body.get("meta_info"), dict), _simple(read_sglang)),
    "ollama": (lambda body: "done" in body or _logprob_objects(body), _simple(read_ollama)),
    "columns": (
        lambda body: any(name in body for name in (*TRACE, "token_ids", "answer", "text")),
        _simple(read_columns),
    ),
}
# The settings of a request that can change probabilities, and the values at which they do not.
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


def _logprob_objects(body: Row) -> bool:
    """Whether `logprobs` is a list of Ollama's objects, not of numbers."""
    values = body.get("logprobs")
    return isinstance(values, list) and values != [] and all(isinstance(v, dict) for v in values)


def read_row(row: Any, reading: Reading) -> Record:
    """The answer of one row: a format's object itself, or an object with that as `response`.

    Raises `WrongRow`.
    """
    if not isinstance(row, dict):
        raise WrongRow("it is not a JSON object")
    if row.get("error"):
        raise WrongRow("the request failed")
    body = _body(row)
    name = _name(body, reading)
    request = _request(row, body)
    if request.get("temperature") == 0:
        reading = reading.model_copy(update={"greedy": True})
    try:
        raw = FORMATS[name][1](body, reading)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise WrongRow(f"as {name}, {where}: {first['msg']}") from error
    if raw.processed == "unknown" and request and _neutral(request):
        raw = replace(raw, processed="no")
    if (label := _label(row, body, reading)) is not None:
        raw = replace(raw, correct=label)
    if isinstance(row.get("group_id"), str | int):
        raw = replace(raw, group_id=str(row["group_id"]))
    answer = record(_id(row, body, reading), raw, reading)
    texts = [text for text in vars(answer).values() if isinstance(text, str)]
    try:
        "".join([*texts, *(answer.tokens or ())]).encode()
    except UnicodeEncodeError as error:
        raise WrongRow("one of its texts holds half a character (a lone surrogate)") from error
    return answer


def _body(row: Row) -> Row:
    """The answer itself, without the envelope of a batch file."""
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
    """The request's settings, where a file keeps them beside the answer."""
    request = row.get("request") or body.get("generation_settings") or {}
    request = request.get("body", request) if isinstance(request, dict) else {}
    return request if isinstance(request, dict) else {}


def _neutral(request: Row) -> bool:
    """Whether nothing in a request changes the probabilities, so that processed ones are raw."""
    return request.get("temperature") == 1 and all(
        request.get(name) is None or request[name] in values for name, values in NEUTRAL.items()
    )


def _name(body: Row, reading: Reading) -> str:
    if reading.format != "auto":
        return reading.format
    for name, (recognised, _) in FORMATS.items():
        if recognised(body):
            return name
    raise WrongRow(f"its format is unknown; known are {', '.join(FORMATS)}")


def _id(row: Row, body: Row, reading: Reading) -> str:
    if reading.id is not None:
        value = find(row, reading.id)
    else:
        values = (source.get(key) for source in (row, body) for key in IDS)
        value = next((value for value in values if value not in ("", None)), None)
    if not isinstance(value, str | int) or value == "":
        raise WrongRow(f"it has no id; add one as {reading.id or ', '.join(IDS)}")
    epoch = body.get("epoch")
    return str(value) if epoch in (None, 1) else f"{value}#epoch-{epoch}"


def _label(row: Row, body: Row, reading: Reading) -> bool | None:
    """The verdict at `label`, or beside the answer; null where there is none."""
    if reading.label is None:
        return verdict(row.get("correct")) if row is not body else None
    value = find(row, reading.label)
    return verdict(find(body, reading.label) if value is None else value)


def find(row: Any, path: str) -> Any:
    """The value at a path such as 'scores.match.value'; null where there is none."""
    for key in path.split("."):
        row = row.get(key) if isinstance(row, dict) else None
    return row
