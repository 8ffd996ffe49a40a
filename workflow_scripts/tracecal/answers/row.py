"""One row of a file of answers, read into a record.

`read_row` unwraps the answer, reads it in its format, and adds the row's further facts: the id, the
verdict, the request and own columns.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from tracecal.answers.column_paths import describe_unknown
from tracecal.answers.decoding import SENT, read_request
from tracecal.answers.event_stream import read_stream
from tracecal.answers.formats import columns
from tracecal.answers.formats.format import Format, Row
from tracecal.answers.formats.registry import FORMATS, recognise
from tracecal.answers.option_share import PREFIX, option_share, options_path
from tracecal.answers.raw_answer import Known, RawAnswer
from tracecal.answers.reading import Reading
from tracecal.answers.record import Record
from tracecal.answers.step import Step
from tracecal.answers.trace import make_record
from tracecal.answers.verdict import WORDS, agreed_verdict, is_unsure
from tracecal.errors import FailedRequest, WrongRow
from tracecal.io.input_files import parsed_json

LABELS = ("correct", "label")
INDICES = frozenset(map(str, range(1000)))  # of lists, in a path
LARGEST_EXACT = 2.0**53  # from here on, neighbouring whole numbers are one float
IDS = ("custom_id", "example_id", "id", "doc_id")
# A row's own columns of the question; rows of benchmarks have its text in another.
QUESTIONS = ("messages", "prompt", "question", "query", "instruction", "context", "passage")
TASKS = ("task", "task_name")
# Ids that programs give: Every Eval Ever, LiteLLM and vLLM, dspy, Gemini, ATIF.
OTHER_IDS = (
    "sample_id",
    "request_id",
    "uuid",
    "key",
    "responseId",
    "response_id",
    "trajectory_id",
    "session_id",
)
TIMES = ("created", "created_at", "completed_at", "timestamp", "startTime")
CENTURY = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def read_row(row: Any, reading: Reading) -> Record:
    """Read the answer of a row: an object in a known format, or a row with one as `response`.

    Raises `WrongRow`, and `FailedRequest` unless `reading` counts failed requests as incorrect.

    >>> read_row({"id": "sum", "answer": "5", "logprobs": [-0.25, -0.5]}, Reading()).surprisal
    [0.25, 0.5]
    """
    if not isinstance(row, dict):
        raise WrongRow("it is not a JSON object")
    try:
        answer_format, body = format_and_answer(row, reading)
    except FailedRequest as error:
        if reading.failed != "incorrect":
            raise
        return Record(_example_id(row, row, reading), correct=False, lacks=str(error))
    request = read_request(row, body)
    if request.is_greedy:
        reading = reading.model_copy(update={"greedy": True})
    try:
        raw = answer_format.read(body)
    except ValidationError as error:
        raise answer_format.wrong_field(error) from error
    verdicts = _verdicts(row, body, reading, raw)
    stated: dict[str, Any] = {
        "correct": agreed_verdict(reading.right_from, **verdicts),
        "unsure": any(map(is_unsure, verdicts.values())),
        "row_task": _task_name(row, body),
        "created": _created(row, body),
    }
    if raw.processed == "unknown" and reading.processed == "auto":
        processed: Known = "no" if request.decoding == "" else "unknown"
        stated |= {"decoding": request.decoding, "processed": processed}
    if raw.model is None and isinstance(row.get("model"), str):
        stated["model"] = row["model"]
    if answer_format.name == "inspect":
        stated["asked"] = _asked(body.get("input"))  # its messages end with the answer
    else:
        sent = next((request.settings[name] for name in SENT if request.settings.get(name)), None)
        stated["asked"] = _asked(sent, raw.prompt, row)
    if isinstance(row.get("group_id"), str | int):
        stated["group_id"] = str(row["group_id"])
    raw = replace(raw, **stated)
    record = make_record(_example_id(row, body, reading), raw, reading)
    if also := reading.also | options_path(reading.options):
        record = replace(record, also=_own_columns(row, body, also, raw.steps))
    _require_encodable(record)
    return record


def format_and_answer(row: Row, reading: Reading) -> tuple[Format, Row]:
    """Return the format of a row's answer, and the unwrapped answer. Raises `WrongRow`."""
    body = _body(row)
    if reading.columns and not _names_response(row, reading):
        body = _named_columns(row, reading)
    try:
        return _format(body, reading), body
    except WrongRow as error:
        raise WrongRow(describe_unknown(row)) from error


def _names_response(row: Row, reading: Reading) -> bool:
    """Whether the options name where a row holds a server's whole response."""
    path = reading.columns.get("response")
    return path is not None and isinstance(value_at(row, path), dict)


def _named_columns(row: Row, reading: Reading) -> Row:
    return {name: value_at(row, path) for name, path in reading.columns.items()}


class Singles(NamedTuple):
    """The answers of one row as rows: its choices, or steps of an agent.

    `n_answers` counts them, also where only the first choice is read; `n_left_out` the steps
    without log-probabilities.
    """

    rows: list[Row]
    n_answers: int = 1
    n_left_out: int = 0


def split_row(row: Any, reading: Reading) -> Singles:
    """Split a row into rows of one answer each.

    Each gets an id, and the row's id as `group_id` unless the row states one. An unreadable row is
    returned unchanged, for `read_row` to explain.

    >>> choices = [{"index": 0, "text": "5"}, {"index": 1, "text": "7"}]
    >>> singles = split_row({"id": "sum", "choices": choices}, Reading())
    >>> [row["custom_id"] for row in singles.rows]
    ['sum', 'sum#choice-2']
    """
    if not isinstance(row, dict):
        return Singles([row])
    if _names_response(row, reading):
        row = row | _named_columns(row, reading)
    elif reading.columns:
        return Singles([row])
    row = _with_parsed_texts(row)
    try:
        body = _body(row)
        answer_format = _format(body, reading)
        bodies = answer_format.split(body)
        first = next(iter(bodies.values()))
        n_choices = len(bodies)
        if n_choices == 1 and first is body:
            return Singles([row])
        example_id = _example_id(_with_body(row, body, first), first, reading)
    except WrongRow:
        return Singles([row])
    verdicts: list[Row] = [{}] * n_choices
    if "" in bodies and n_choices > 1:
        is_first = reading.choices == "first"
        verdicts = _choice_verdicts(row, n_choices, is_first)
        bodies = {"": first} if is_first else bodies
    is_grouped = len(bodies) == 1 or isinstance(row.get("group_id"), str | int)
    group = {} if is_grouped else {"group_id": example_id}
    if "epoch" in body:  # the id states it
        bodies = {ending: part | {"epoch": None} for ending, part in bodies.items()}
    rows = [
        _with_id(_with_body(row, body, part) | group | verdict, example_id + ending, reading)
        for (ending, part), verdict in zip(bodies.items(), verdicts, strict=False)
    ]
    return Singles(rows, n_choices, answer_format.n_left_out(body))


def _choice_verdicts(row: Row, n_choices: int, is_first: bool) -> list[Row]:
    """Return the verdicts that a row lists for its choices.

    A single verdict is about the first choice if only that is read (`is_first`). Raises `WrongRow`
    for one verdict on several choices.
    """
    verdicts: list[Row] = [{} for _ in range(n_choices)]
    for name in (*LABELS, "labelled"):
        values = row.get(name)
        if values is None or (is_first and not isinstance(values, list)):
            continue
        if not isinstance(values, list) or len(values) != n_choices:
            raise WrongRow(
                f"it has {n_choices} choices, and {name} is not a list of as many verdicts; give "
                "such a list, or read the first (--choices first)"
            )
        for verdict, value in zip(verdicts, values, strict=True):
            verdict[name] = value
    return verdicts


def _format(body: Row, reading: Reading) -> Format:
    return recognise(body) if reading.format == "auto" else FORMATS[reading.format]


def _with_parsed_texts(row: Row) -> Row:
    """Parse the JSON texts of a row of LiteLLM's spend logs; return other rows unchanged.

    The proxy keeps a request and its response where ``store_prompts_in_spend_logs`` is set.
    """
    if not isinstance(row.get("proxy_server_request"), str):
        return row
    objects = {}
    for name in ("messages", "response", "proxy_server_request"):
        try:
            objects[name] = parsed_json(row[name]) if isinstance(row.get(name), str) else row[name]
        except (KeyError, ValueError):
            continue
    if not objects.get("response"):
        raise WrongRow("LiteLLM kept no response (store_prompts_in_spend_logs)")
    return row | objects | {"request": objects.get("proxy_server_request") or row.get("request")}


def _with_body(row: Row, body: Row, part: Row) -> Row:
    """Replace the answer in a row, keeping its wrapping."""
    if body is row:
        return dict(part)
    response = row["response"]
    if isinstance(response, dict) and "body" in response:
        return row | {"response": response | {"body": part}}
    return row | {"response": part}


def _with_id(row: Row, example_id: str, reading: Reading) -> Row:
    """Set the id of a row where `_example_id` looks first."""
    *path, last = (reading.id or IDS[0]).split(".")
    row = copy = dict(row)
    for name in path:
        copy[name] = copy = dict(copy[name])
    copy[last] = example_id
    return row


def _body(row: Row) -> Row:
    """Unwrap the answer of a row of a batch file; both may be JSON in a text.

    Raises `FailedRequest` if there is an error instead.
    """
    if row.get("error"):
        raise FailedRequest("the request failed")
    response = _parsed_answer(row.get("response"))
    if not isinstance(response, dict):
        return row
    if "body" not in response:
        if response.get("error"):
            raise FailedRequest("the request failed")
        return response
    status, body = response.get("status_code"), _parsed_answer(response["body"])
    if status not in (None, 200):
        raise FailedRequest(f"the request failed with status {status}")
    if not isinstance(body, dict):
        raise WrongRow("its response.body is no JSON object with an answer")
    if body.get("error"):
        raise FailedRequest("the request failed")
    return body


def _parsed_answer(value: Any) -> Any:
    """Parse a text that is JSON in a known format; return other values unchanged.

    JSON in a user's own text column is an answer, and stays a text.
    """
    if not isinstance(value, str):
        return value
    try:
        if (streamed := read_stream(value)) is not None and len(streamed) == 1:
            return streamed[0]
        if not value.lstrip().startswith("{"):
            return value
        parsed = parsed_json(value)
        return value if recognise(parsed) is columns.FORMAT else parsed
    except (ValueError, WrongRow):
        return value


def _asked(sent: Any, prompt: str | None = None, row: Row | None = None) -> str | None:
    """Compute a digest of what was sent, and of the row's own questions that it does not hold.

    None where nothing is known, or where the record's `prompt` is all.
    """
    own = {name: _without_reply(row[name]) for name in QUESTIONS if row and row.get(name)}
    sent = prompt or sent or own.get("messages") or own.get("prompt")
    text = _canonical(sent) if sent else ""
    further = [each for each in map(_canonical, own.values()) if each[1:-1] not in text]
    if not further and (prompt or not sent):
        return None
    content = "\0".join([text, *further])
    return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()


def _without_reply(question: Any) -> Any:
    """Leave out the replies that end a list of messages: they are answers."""
    if not isinstance(question, list):
        return question
    n = len(question)
    while n and isinstance(question[n - 1], dict) and question[n - 1].get("role") == "assistant":
        n -= 1
    return question[:n] or question


def _canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, sort_keys=True, default=str)


def _task_name(row: Row, body: Row) -> str | None:
    """Return the task that a row, its answer or its metadata names."""
    sources = (source for source in (row, body, row.get("metadata")) if isinstance(source, dict))
    names = (source.get(name) for source in sources for name in TASKS)
    return next((name for name in names if isinstance(name, str) and name), None)


def _created(row: Row, body: Row) -> float | None:
    """Return the first time that an answer or its row states, in seconds since 1970."""
    for source in (body, row):
        for name in TIMES:
            if name in source and (moment := parse_moment(source[name])) is not None:
                return moment
    return None


def _example_id(row: Row, body: Row, reading: Reading) -> str:
    if reading.id is not None:
        value = value_at(row, reading.id)
    else:
        values = (
            source.get(key) for keys in (IDS, OTHER_IDS) for source in (row, body) for key in keys
        )
        value = next((value for value in values if value not in ("", None)), None)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        value = None if math.isnan(value) else whole_id(value)
    if value in ("", None):
        raise WrongRow(_describe_missing_id(row, reading))
    if not isinstance(value, str | int):
        raise WrongRow(f"its id is a {type(value).__name__}; give a text or a whole number")
    epoch = body.get("epoch")
    return str(value) if epoch in (None, 1) else f"{value}#epoch-{epoch}"


def whole_id(value: float) -> int:
    """An id that a table or JSON holds as a float. Raises `WrongRow` unless it is exact.

    >>> whole_id(3.0)
    3
    """
    if not value.is_integer():
        raise WrongRow(f"its id is {value:g}, a number with a fraction; give a text or a whole one")
    if abs(value) >= LARGEST_EXACT:
        raise WrongRow(
            f"its id is the float {value!r}, which may stand for several whole numbers; give a text"
        )
    return int(value)


def _describe_missing_id(row: Row, reading: Reading) -> str:
    if reading.id is not None:
        return f"it has no id at {reading.id}"
    names = [name for name, value in row.items() if name.lower().endswith("id") and value]
    hint = f"--id {names[0]}" if names else "--id PATH"
    return f"it has no id; add one as {', '.join(IDS)}, or name its field, as in {hint}"


def _verdicts(row: Row, body: Row, reading: Reading, raw: RawAnswer) -> dict[str, Any]:
    """Return the raw verdicts of the first of these sources in a row; they must agree.

    1. The verdict of `tracecal label`, which may be unsure.
    2. With `label`, the verdict at that path alone.
    3. Without `label`, the format's verdicts, and the columns `LABELS` of the row and the answer.
    """
    if isinstance(labelled := row.get("labelled"), dict):
        verdict = labelled.get("correct")
        return {"labelled": "unsure" if "correct" in labelled and verdict is None else verdict}
    of_format = {"answer": raw.correct, **raw.stated}
    if reading.label is not None:
        at_path = {
            name: value
            for name, source in (("row", row), ("answer", body))
            if (value := value_at(source, reading.label)) is not None
        }
        return at_path
    if raw.verdicts:
        of_format |= _harness_verdict(raw.verdicts)
    # Columns that are named, and a harness's own metrics, are not second-guessed.
    if reading.columns and not _names_response(row, reading):
        names: tuple[str, ...] = ("correct",)
    else:
        names = () if "metrics" in body else LABELS
    in_row = {name: row.get(name) for name in names}
    in_body = {f"response.{name}": body.get(name) for name in names if body is not row}
    return of_format | in_row | in_body


def has_verdict_at(row: Row, path: str | None) -> bool:
    """Return whether a row or its answer has a verdict at a path."""
    sources = () if path is None else (row, _body(row))
    return any(value_at(source, path) not in (None, "") for source in sources)


def _harness_verdict(verdicts: Mapping[str, Any]) -> dict[str, Any]:
    if len(verdicts) > 1:
        raise WrongRow(f"it has several verdicts ({', '.join(verdicts)}); name one as 'label'")
    return dict(verdicts)


def _own_columns(
    row: Row, body: Row, paths: Mapping[str, str], steps: Sequence[Step]
) -> list[dict[str, Any]]:
    """Read the user's own columns: numbers, and verdicts as 1 and 0; None if missing."""
    columns = []
    for name, path in paths.items():
        value = option_share(steps, path) if path.startswith(PREFIX) else value_at(row, path)
        value = value_at(body, path) if value is None else value
        try:
            number = None if value in (None, "") else _number(value)
        except (TypeError, ValueError) as error:
            raise WrongRow(f"{path} holds {value!r}, neither a number nor a verdict") from error
        columns.append({"name": name, "path": path, "value": number})
    return columns


def _number(value: Any) -> float | None:
    """A finite number, or a verdict's; None for NaN. Raises `TypeError` or `ValueError`."""
    word = value.strip().casefold() if isinstance(value, str) else None
    number = float(WORDS.get(word, value) if word else value)
    if math.isinf(number):
        raise ValueError
    return None if math.isnan(number) else number


def _require_encodable(record: Record) -> None:
    texts = [text for text in vars(record).values() if isinstance(text, str)]
    try:
        "".join([*texts, *(record.tokens or ())]).encode()
    except UnicodeEncodeError as error:
        raise WrongRow("one of its texts holds an unpaired surrogate") from error


def parse_moment(value: Any) -> float | None:
    """Parse a time, a number or ISO 8601 (UTC without an offset), to seconds since 1970.

    None for anything else, and for times outside this century: placeholders and durations.

    >>> parse_moment("2026-03-01T12:00:00Z"), parse_moment(0)
    (1772366400.0, None)
    """
    try:
        if isinstance(value, datetime | str) and not str(value).replace(".", "").isdecimal():
            moment = datetime.fromisoformat(str(value))
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        else:
            seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if CENTURY[0].timestamp() <= seconds < CENTURY[1].timestamp() else None


def without_values(paths: Mapping[str, str], row: Any) -> dict[str, str]:
    """Return the columns and paths at which a row has no value."""
    return {name: path for name, path in paths.items() if value_at(row, path) is None}


def value_at(row: Any, path: str) -> Any:
    """The value at a path in nested mappings and lists; None where there is none.

    >>> value_at({"scores": {"match": {"value": "C"}}}, "scores.match.value")
    'C'
    >>> value_at({"replies": [{"text": "Lima"}]}, "replies.0.text")
    'Lima'
    """
    for key in path.split("."):
        if isinstance(row, list) and key in INDICES:
            row = row[int(key)] if int(key) < len(row) else None
        else:
            row = row.get(key) if isinstance(row, dict) else None
    return row
