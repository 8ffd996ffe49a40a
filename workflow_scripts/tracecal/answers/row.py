"""One row of a file of answers: its answers, each recognised once, and their records.

1. `answers_of(row, reading)` unwraps the answer, recognises its format, and splits it into choices.
2. `read_records(answers, reading)` reads each into a record, with the facts that its row states.
3. `read_row(row, reading)` does both for a row of one answer.
4. `as_frame(records)` makes a frame of records.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from tracecal.answers.column_paths import describe_unknown
from tracecal.answers.facts import (
    LABELS,
    SENT,
    OneAnswer,
    example_id,
    names_response,
    split_part_labels,
    value_at,
    with_facts,
    without_part_labels,
)
from tracecal.answers.formats import columns
from tracecal.answers.formats.layout import STATED_IDS, Layout, Row, recogniser, with_value
from tracecal.answers.formats.layouts import FORMATS
from tracecal.answers.log_file import parsed_text, read_stream, require_json
from tracecal.answers.raw_answer import NoAnswer, RawAnswer, stated_error
from tracecal.answers.reading import Reading
from tracecal.answers.record import RECORDS, Record
from tracecal.answers.trace import Draft, each_right, make_records
from tracecal.errors import Unanswered, WrongRow, WrongVerdict
from tracecal.io.input_files import parsed_json

FAILED: NoAnswer = "request failed"
_FILTERED = re.compile("content[_ ]?(filter|policy)", re.I)  # in errors
# A list of choices, and a choice that is a row.
_are_choices, _has_choice = map(
    recogniser, (["0.message{} 0.finish_reason"], ["message{} logprobs{}"])
)
OUTPUTS, INPUTS = ("output", "outputs", "result"), ("inputs", "input")  # of calls that are traced


def answers_of(row: Any, reading: Reading) -> list[OneAnswer]:
    """The answers of a row: its choices, or one; or one with the error of a row that has none.

    Each of several gets an id, and the row's id as `group_id` unless the row states one.

    >>> choices = [{"index": 0, "text": "5"}, {"index": 1, "text": "7"}]
    >>> answers = answers_of({"id": "sum", "choices": choices}, Reading())
    >>> [answer.row["custom_id"] for answer in answers]
    ['sum', 'sum#choice-2']
    """
    try:
        return [without_part_labels(answer) for answer in _answers(row, reading)]
    except (WrongRow, Unanswered) as error:
        return [OneAnswer(row, row if isinstance(row, dict) else {}, error=error)]


def read_records(answers: Sequence[OneAnswer], reading: Reading) -> list[Record | WrongRow]:
    """Read answers into records, also those that the model did not give; or say what is wrong."""
    return make_records([*each_right(partial(_draft, reading), answers)])


def as_frame(records: Iterable[Record]) -> pl.DataFrame:
    """Make a frame with the columns of `RECORDS`, a row per record, in their order.

    >>> as_frame([Record("sum", surprisal=[0.25, 0.5])])["surprisal"].to_list()
    [[0.25, 0.5]]
    """
    rows = [*records]
    columns = [_array([getattr(row, name) for row in rows], kind) for name, kind in RECORDS.items()]
    return pl.DataFrame(pa.RecordBatch.from_arrays(columns, [*RECORDS]))


def _array(values: Sequence[Any], kind: Any) -> pa.Array:
    """Values as an array of Arrow; `pa.array` would first load pandas, where it is installed."""
    if not isinstance(kind, pl.List | pl.Struct):
        return pl.Series(values, dtype=kind).to_arrow()
    is_present = np.array([value is not None for value in values], dtype=bool)
    buffers = [pa.py_buffer(np.packbits(is_present, bitorder="little"))]
    if isinstance(kind, pl.List):
        lists = [() if value is None else value for value in values]
        buffers.append(pa.py_buffer(np.cumsum([0, *map(len, lists)])))
        children = [_array([*chain.from_iterable(lists)], kind.inner)]
    else:
        children = [
            _array([value and value.get(field.name) for value in values], field.dtype)
            for field in kind.fields
        ]
    arrow = pl.Series([], dtype=kind).to_arrow().type
    return pa.Array.from_buffers(arrow, len(values), buffers, children=children)


def _draft(reading: Reading, answer: OneAnswer) -> Draft:
    if isinstance(answer.error, WrongRow):
        raise answer.error
    raw = with_facts(_raw_answer(answer), answer, reading)
    return Draft(example_id(answer.row, answer.body, reading), raw, reading)


def _raw_answer(answer: OneAnswer) -> RawAnswer:
    """What the format of an answer states; of a row without one why there is none."""
    if answer.format is None:
        return RawAnswer(no_answer=str(answer.error))
    try:
        return answer.format.read(answer.body)
    except Unanswered as error:
        return RawAnswer(no_answer=str(error))


def read_row(row: Any, reading: Reading) -> Record:
    """Read the answer of a row: an object in a known format, or a row with one as `response`.

    >>> read_row({"id": "sum", "answer": "5", "logprobs": [-0.25, -0.5]}, Reading()).surprisal
    [0.25, 0.5]
    """
    first = reading.model_copy(update={"choices": "first"})
    (record,) = read_records(answers_of(row, first)[:1], reading)
    if isinstance(record, WrongRow):
        raise record
    return record


def _answers(row: Any, reading: Reading) -> list[OneAnswer]:
    if not isinstance(row, dict):
        require_json(row)
        raise WrongRow("it is not a JSON object")
    row = _with_response(row, reading)
    if names_response(row, reading):
        row = row | _named_columns(row, reading)
    elif reading.columns:
        row, labels = split_part_labels(row)
        body = _named_columns(row, reading)
        if {*map(type, body.values())} == {type(None)}:
            _require_no_error(row)
        return [OneAnswer(row, body, _format(body, row, reading), labels)]
    row = _with_parsed_texts(row)
    body = _body(row)
    answer_format = _format(body, row, reading)
    bodies = answer_format.split(body)
    first = next(iter(bodies.values()))
    if len(bodies) == 1 and first is body:
        return [OneAnswer(row, body, answer_format)]
    n_choices = len(bodies)
    row_id = example_id(_with_body(row, body, first), first, reading)
    choice_verdicts: list[Row] = [{}] * n_choices
    if n_choices > 1:
        is_first = reading.choices == "first"
        choice_verdicts = _choice_verdicts(row, n_choices, is_first)
        bodies = {"": first} if is_first else bodies
    is_grouped = len(bodies) == 1 or isinstance(row.get("group_id"), str | int)
    group = {} if is_grouped else {"group_id": row_id}
    if "epoch" in body:  # the id states it
        bodies = {ending: part | {"epoch": None} for ending, part in bodies.items()}
    answers = []
    for (ending, part), verdict in zip(bodies.items(), choice_verdicts, strict=False):
        single = _with_body(row, body, part) | group | verdict
        single = with_value(single, reading.id or STATED_IDS[0], row_id + ending)
        part = single if body is row else part
        answers.append(OneAnswer(single, part, answer_format, None, n_choices))
    return answers


def _with_response(row: Row, reading: Reading) -> Row:
    """A row whose response is an object where it is JSON as text at the path that the options name,
    or a tracer's output.
    """
    if "response" in reading.columns:
        for name, parse in (("response", _parsed_answer), ("request", parsed_text)):
            path = reading.columns.get(name, "")
            text = value_at(row, path)
            if isinstance(text, str) and isinstance(value := parse(text), dict):
                row = with_value(row, path, value)
        return row
    if reading.columns or "response" in row or reading.format != "auto":
        return row
    output = next((row[name] for name in OUTPUTS if name in row), None)
    if _has_choice(row):
        response = {"choices": [row]}
    elif _are_choices(output):
        response = {"choices": output}
    elif output is None or FORMATS.recognises(row):
        return row
    else:
        response = _parsed_answer(output)
    if not (isinstance(response, dict) and FORMATS.recognises(response)):
        return row
    inputs = (row[name] for name in INPUTS if isinstance(row.get(name), dict))
    sent = next((each for each in inputs if not each.keys().isdisjoint(SENT)), row.get("request"))
    return row | {"response": response, "request": sent}


def _named_columns(row: Row, reading: Reading) -> Row:
    return {name: value_at(row, path) for name, path in reading.columns.items()}


def _choice_verdicts(row: Row, n_choices: int, is_first: bool) -> list[Row]:
    """Return the verdicts that a row lists for its choices.

    A single verdict is about the first choice if only that is read (`is_first`). Raises
    `WrongVerdict` for one verdict on several choices.
    """
    of_choices: list[Row] = [{} for _ in range(n_choices)]
    for name in (*LABELS, "labelled"):
        values = row.get(name)
        if values is None or (is_first and not isinstance(values, list)):
            continue
        if not isinstance(values, list) or len(values) != n_choices:
            raise WrongVerdict(
                f"it has {n_choices} choices, and {name} is not a list of as many verdicts; give "
                "such a list, or read the first (--choices first)"
            )
        for verdict, value in zip(of_choices, values, strict=True):
            verdict[name] = value
    return of_choices


def _format(body: Row, row: Row, reading: Reading) -> Layout:
    """The format of an answer. Raises `WrongRow` where it is in none."""
    if reading.format != "auto":
        return FORMATS[reading.format]
    try:
        return FORMATS.layout_of(body)
    except WrongRow as error:
        raise WrongRow(describe_unknown(row)) from error


def _with_parsed_texts(row: Row) -> Row:
    """Parse the JSON texts of a row of LiteLLM's spend logs; return other rows unchanged.

    The proxy keeps a request and its response where ``store_prompts_in_spend_logs`` is set.
    """
    if not isinstance(row.get("proxy_server_request"), str):
        return row
    names = ("messages", "response", "proxy_server_request")
    row = row | {name: parsed_text(row[name]) for name in names if isinstance(row.get(name), str)}
    if not row.get("response"):
        if row.get("status") == "failure":
            raise Unanswered(FAILED)
        raise WrongRow("LiteLLM kept no response (store_prompts_in_spend_logs)")
    return row | {"request": row["proxy_server_request"] or row.get("request")}


def _with_body(row: Row, body: Row, part: Row) -> Row:
    """Replace the answer in a row, keeping its wrapping."""
    if body is row:
        return dict(part)
    response = row["response"]
    is_wrapped = isinstance(response, dict) and "body" in response
    return with_value(row, "response.body" if is_wrapped else "response", part)


def _body(row: Row) -> Row:
    """Unwrap the answer of a row of a batch file; both may be JSON in a text.

    Raises `Unanswered` if there is an error instead.
    """
    _require_no_error(row)
    response = _parsed_answer(row.get("response"))
    if "response" in row and response in (None, {}) and not FORMATS.recognises(row):
        raise Unanswered(FAILED)
    if not isinstance(response, dict):
        return row
    _require_no_error(response)
    if "body" not in response and {"status_code", "text"} <= response.keys():
        response = response | {"body": response["text"]}
    if "body" not in response:
        return response
    status, body = response.get("status_code"), _parsed_answer(response["body"])
    if isinstance(body, dict):
        _require_no_error(body)
    if status not in (None, 200):
        raise Unanswered(FAILED)
    if not isinstance(body, dict):
        raise WrongRow("its response.body is no JSON object with an answer")
    return body


def _require_no_error(row: Row) -> None:
    """Raise `Unanswered` for an object that programs write where there is no answer."""
    if error := stated_error(row):
        raise Unanswered("filtered" if _FILTERED.search(str(error)) else FAILED)


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
        return value if FORMATS.layout_of(parsed) is columns.FORMAT else parsed
    except (ValueError, WrongRow):
        return value
