"""One row of a file of answers."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from tracecal.answers.formats.registry import FORMATS
from tracecal.answers.moment import moment
from tracecal.answers.reading import Reading
from tracecal.answers.record import Record
from tracecal.answers.trace import record
from tracecal.answers.verdict import VERDICTS, one_verdict, verdict
from tracecal.answers.wrong_row import WrongRow

Row = dict[str, Any]
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
LABELS = ("correct", "label")
IDS = ("custom_id", "example_id", "id", "doc_id")
TIMES = ("created", "created_at", "completed_at", "timestamp", "startTime")


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
    times = (moment(source.get(name)) for source in (body, row) for name in TIMES)
    raw = replace(raw, created=next((time for time in times if time is not None), None))
    answer = record(_id(row, body, reading), raw, reading)
    if reading.also:
        answer = replace(answer, also=_also(row, body, reading.also))
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
    return request.get("temperature") is not None and all(
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
    """The first of three sources that a row has; the verdicts of one source must agree.

    1. The verdict of `tracecal label`, which may be unsure.
    2. That at the path `label`, else the answer's `own`.
    3. Without `label`: `own`, and those under the names LABELS in the row and in the answer.
    """
    if isinstance(given := row.get("labelled"), dict):
        return verdict(given.get("correct"))
    if reading.label is not None:
        found = one_verdict(row=find(row, reading.label), answer=find(body, reading.label))
        return own if found is None else found
    # Columns that are named, and a harness's own metrics, are not second-guessed.
    looked_at = ("correct",) if reading.columns else () if "metrics" in body else LABELS
    beside = {name: row.get(name) for name in looked_at}
    inside = {f"response.{name}": body.get(name) for name in looked_at if body is not row}
    return one_verdict(answer=own, **beside, **inside)


def _also(row: Row, body: Row, paths: Mapping[str, str]) -> list[dict[str, Any]]:
    """The columns of a user's own: numbers as they are, verdicts as 1 and 0; null where the row has
    none.
    """
    found = []
    for name, path in paths.items():
        value = find(row, path)
        value = find(body, path) if value is None else value
        try:
            number = None if value in (None, "") else _number(value)
        except (TypeError, ValueError) as error:
            raise WrongRow(f"{path} holds {value!r}, neither a number nor a verdict") from error
        found.append({"name": name, "path": path, "value": number})
    return found


def _number(value: Any) -> float | None:
    """A finite number, or a verdict's; null for NaN. Raises `TypeError` or `ValueError`."""
    number = float(VERDICTS.get(value, value))
    if math.isinf(number):
        raise ValueError
    return None if math.isnan(number) else number


def find(row: Any, path: str) -> Any:
    """The value at a path such as 'scores.match.value'; null where there is none."""
    for key in path.split("."):
        row = row.get(key) if isinstance(row, dict) else None
    return row
