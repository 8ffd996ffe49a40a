"""The answer that a row holds."""

from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from tracecal.logs.evaluations import one_verdict, verdict
from tracecal.logs.formats import FORMATS, Row
from tracecal.logs.options import Reading
from tracecal.logs.record import Record
from tracecal.logs.steps import WrongRow
from tracecal.logs.trace import record

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


def read_row(row: Any, reading: Reading) -> Record:
    """The answer of one row: a format's object itself, or an object with that as `response`.

    Raises `WrongRow`.
    """
    if not isinstance(row, dict):
        raise WrongRow("it is not a JSON object")
    if row.get("error"):
        raise WrongRow("the request failed")
    body = _body(row)
    if reading.columns:
        body = {name: find(row, path) for name, path in reading.columns.items()}
    name = _name(body, reading)
    request = _request(row, body)
    if request.get("temperature") == 0:
        reading = reading.model_copy(update={"greedy": True})
    try:
        raw = FORMATS[name][1](body, reading.label)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise WrongRow(f"as {name}, {where}: {first['msg']}") from error
    if raw.processed == "unknown" and request and _neutral(request):
        raw = replace(raw, processed="no")
    raw = replace(raw, correct=_label(row, body, reading, raw.correct))
    if isinstance(row.get("group_id"), str | int):
        raw = replace(raw, group_id=str(row["group_id"]))
    answer = record(_id(row, body, reading), raw, reading)
    texts = [text for text in vars(answer).values() if isinstance(text, str)]
    try:
        "".join([*texts, *(answer.tokens or ())]).encode()
    except UnicodeEncodeError as error:
        raise WrongRow("one of its texts holds an unpaired surrogate") from error
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
    raise WrongRow(f"its format is unknown; expected one of {', '.join(FORMATS)}")


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


def _label(row: Row, body: Row, reading: Reading, own: bool | None) -> bool | None:
    """The verdict of `tracecal label`, unsure or not, whatever else the row says; or that at
    `label`; without one that of the answer or beside it, which must agree.
    """
    if isinstance(given := row.get("labelled"), dict):
        return verdict(given.get("correct"))
    if reading.label is None:
        beside = row.get("correct") if row is not body else None
        return one_verdict(answer=own, correct=beside)
    value = find(row, reading.label)
    found = verdict(find(body, reading.label) if value is None else value)
    return own if found is None else found


def find(row: Any, path: str) -> Any:
    """The value at a path such as 'scores.match.value'; null where there is none."""
    for key in path.split("."):
        row = row.get(key) if isinstance(row, dict) else None
    return row
