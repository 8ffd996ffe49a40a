"""The verdicts of a file, as people gave them: one or several on an answer.

`read_votes(spec, reading)` reads them from a table or JSON Lines, from an export of Label Studio or
Argilla, or from a file of `tracecal label`. `labels.csv:custom_id:verdict` names the columns, which
are otherwise found by their names; each may be a path, such as meta.example_id.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import polars as pl
from pydantic import BaseModel, ValidationError

from tracecal.answers.facts import is_asked_for, value_at, whole_id
from tracecal.answers.formats.layout import Layout, wrong_field
from tracecal.answers.log_file import numbered, open_rows, require_json, require_right_rows
from tracecal.answers.reading import Reading
from tracecal.answers.verdict import alone, is_unsure, parse_verdict
from tracecal.errors import InputError, WrongRow, WrongVerdict, describe_wrong_rows, some_of
from tracecal.io.input_files import MOST_BYTES, require_regular
from tracecal.io.log import LOGGER

# Columns that may hold the id and the verdict, as `_plain_name` has them, in the order of
# preference. In exports of tools `id` is the tool's own number.
ID_COLUMNS = ("example_id", "custom_id", "doc_id", "sample_id", "answer_id", "request_id", "id")
VERDICT_COLUMNS = (
    *("final_verdict", "final_label", "adjudicated_verdict", "adjudicated_label", "consensus"),
    *("correct", "is_correct", "verdict", "label", "judgement", "judgment", "right", "choice"),
    *("passed", "pass", "grade", "accuracy", "acc", "score", "rating"),
)
# Columns that say whether a row's verdict is the final one on its answer.
FINAL_COLUMNS = ("ground_truth", "is_ground_truth", "adjudicated", "is_final")
TOOL_IDS = ID_COLUMNS[:-1]
LABEL_STUDIO = Layout(
    name="label_studio",
    programs="tasks of Label Studio's export as JSON",
    marks=("annotations[]",),
    also={
        "data": dict[str, Any],
        "annotations![].completed_by": Any,
        "annotations![].was_cancelled": bool,
        "annotations![].ground_truth": bool,
        "annotations![].result?[].type": str,
        "annotations![].result?[].from_name": str,
        "annotations![].result?[].value": dict[str, Any],
    },
)
_PUNCTUATION = re.compile(r"[\W_]+")


class Vote(NamedTuple):
    """A person's verdict on an answer: None where the person is unsure.

    `is_asked_for` says whether 'tracecal label --error-rate' asked for it.
    """

    example_id: str
    correct: bool | None
    who: str
    is_final: bool = False
    is_asked_for: bool = False


@dataclass(frozen=True)
class Votes:
    """The verdicts of a file, in its order.

    Attributes
    ----------
    votes
        All verdicts; rows without one are left out.
    source
        The file, for messages.
    columns
        The columns of the id and of the verdict; None where the file is an export.
    rows
        The rows of a table, to look for other columns of ids.
    """

    votes: Sequence[Vote]
    source: str
    columns: tuple[str, str] | None = None
    rows: Sequence[Mapping[str, Any]] = field(default=(), repr=False)


class Judgement(NamedTuple):
    """What a row says of an answer: verdicts as they are written, each with who gave it."""

    example_id: str
    values: Sequence[tuple[Any, Any]]
    is_final: bool = False


class Response(BaseModel):
    """One person's answer to a question of Argilla."""

    value: Any = None
    user_id: Any = None
    status: str | None = None


class ArgillaRecord(BaseModel):
    """A record of Argilla, as its to_json writes it."""

    id: Any = None
    fields: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    responses: dict[str, list[Response]]


def read_votes(spec: str | Path | Any, reading: Reading) -> Votes:
    """Read the verdicts of a frame, or of a file, whose path may name columns: ``PATH:ID:VERDICT``.

    Raises `InputError` where it holds no verdict, the columns are not found, or a row is wrong;
    rows that cannot be read are left out where `reading` skips them, verdicts never.
    """
    if isinstance(spec, str | Path):
        path, choices = _split_spec(str(spec))
        require_regular(path, MOST_BYTES)
        located = list(open_rows(Path(path))[0])
    else:
        path, choices = "the frame of labels", []
        located = list(numbered(pl.DataFrame(spec).iter_rows(named=True)))
    objects = [row for _, row in located if isinstance(row, Mapping)]
    is_export = any(map(_export_reader, objects))
    columns = None
    if choices:
        columns = _named_columns(choices, objects, path)
    elif not is_export and objects:
        columns = _find_columns(objects, path, reading)
    votes, errors, wrong_verdicts = list[Vote](), list[str](), list[str]()
    for location, row in located:
        try:
            votes += _votes_of(row, columns, reading, location)
        except WrongRow as error:
            errors.append(f"{location}: {error}")
            if isinstance(error, WrongVerdict):
                wrong_verdicts.append(errors[-1])
    require_right_rows(path, errors, wrong_verdicts, reading.wrong_rows == "skip")
    if errors and votes:
        LOGGER.warning("%s: left out %s", path, describe_wrong_rows(errors))
    if not votes:
        reasons = (
            describe_wrong_rows(errors) if errors else f"It has {len(located)} rows without one."
        )
        raise InputError(f"{path} holds no verdict. {reasons}")
    rows = [] if is_export else objects
    return Votes(votes, path, columns, rows)


def _votes_of(
    row: Any, columns: tuple[str, str] | None, reading: Reading, location: str
) -> Iterator[Vote]:
    """The verdicts of a row. Raises `WrongRow`."""
    require_json(row)
    if not isinstance(row, Mapping):
        raise WrongRow("it is no row of a table and no JSON object")
    if columns is not None:
        judgement = _read_columns(row, *columns, reading)
    elif read_export := _export_reader(row):
        try:
            judgement = read_export(row, reading.question)
        except ValidationError as error:
            raise wrong_field("an export", error) from error
    else:
        raise WrongRow("it is unlike the rows before it, which are of a labelling tool")
    for number, (value, who) in enumerate(judgement.values):
        value = alone(value)
        correct = parse_verdict(value, reading)
        if correct is None:
            continue
        if not judgement.example_id:
            raise WrongRow("its id is empty")
        sure = None if is_unsure(value) else correct
        person = id_text(who) or f"{location}, {number}"
        yield Vote(judgement.example_id, sure, person, judgement.is_final, is_asked_for(row))


def id_text(value: Any) -> str:
    """An id as text; 3.0 is 3, as a table writes whole numbers in a column with gaps.

    >>> id_text(3.0), id_text(None)
    ('3', '')
    """
    if isinstance(value, float):
        value = whole_id(value) if value.is_integer() else None if math.isnan(value) else value
    return str(value).strip() if isinstance(value, str | int | float) else ""


def _split_spec(spec: str) -> tuple[str, list[tuple[str, str]]]:
    """The path, and what may be the columns where they are named: a name may hold colons."""
    parts = spec.split(":")
    lengths = range(len(parts), 0, -1)
    n = next((n for n in lengths if Path(":".join(parts[:n])).exists()), max(len(parts) - 2, 1))
    path, names = ":".join(parts[:n]), parts[n:]
    choices = [(":".join(names[:k]), ":".join(names[k:])) for k in range(len(names) - 1, 0, -1)]
    if names and not any(map(all, choices)):
        raise InputError(
            f"{spec} names no two columns: give those of the id and of the verdict, as in "
            f"--labels {quote(f'{path}:ID:VERDICT')}."
        )
    return path, [choice for choice in choices if all(choice)]


def _named_columns(
    choices: Sequence[tuple[str, str]], rows: Sequence[Mapping[str, Any]], path: str
) -> tuple[str, str]:
    """The first choice whose two columns there are. Raises `InputError`."""
    present = [[_present(name, rows) for name in choice] for choice in choices]
    for example_id, verdict in present:
        if example_id is not None and verdict is not None:
            return example_id, verdict
    if not rows:
        return choices[0]
    missing = next(name for name, column in zip(choices[0], present[0], strict=True) if not column)
    raise InputError(
        f"{path}: no row has the column {missing}; there are {some_of([*rows[0]], 12)}."
    )


def _present(name: str, rows: Sequence[Mapping[str, Any]]) -> str | None:
    """The column of a name, or path: of rows that write it so, or in other letters."""
    if any(name in row or value_at(row, name) is not None for row in rows):
        return name
    return _columns_by_plain_name(rows).get(_plain_name(name))


def _columns_by_plain_name(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {_plain_name(name): name for row in rows[:100] for name in row if name}


@lru_cache(maxsize=1000)  # each row of a table has the same names
def _plain_name(name: str) -> str:
    """A column's name without case, blanks, hyphens and question marks.

    >>> _plain_name("Example-ID"), _plain_name("Is correct?")
    ('example_id', 'is_correct')
    """
    return _PUNCTUATION.sub("_", name.casefold()).strip("_")


def _find_columns(
    rows: Sequence[Mapping[str, Any]], path: str, reading: Reading
) -> tuple[str, str]:
    """The columns of the id and of the verdict, by their names."""
    columns = _columns_by_plain_name(rows)
    id_names = [_plain_name(name) for name in (reading.id or "", (reading.id or "").split(".")[-1])]
    example_id = next((columns[name] for name in (*id_names, *ID_COLUMNS) if name in columns), None)
    verdict = next((columns[name] for name in VERDICT_COLUMNS if name in columns), None)
    if example_id is None or verdict is None:
        lacking = "id" if example_id is None else "verdict"
        example_id, verdict = example_id or "ID", verdict or "VERDICT"
        raise InputError(
            f"{path}: no column looks like the {lacking} among {some_of([*columns.values()], 12)}: "
            f"name both, as in --labels {quote(f'{path}:{example_id}:{verdict}')}."
        )
    return example_id, verdict


def _read_columns(
    row: Mapping[str, Any], id_column: str, column: str, reading: Reading
) -> Judgement:
    for name in (id_column, column):
        if name not in row and value_at(row, name) is None:
            raise WrongRow(f"it has no column {name}, only {some_of([*row], 12)}")
    value, example_id = value_at(row, column), id_text(value_at(row, id_column))
    if not example_id and value not in (None, ""):
        raise WrongRow(f"its {id_column} is empty")
    who = None if reading.who is None else value_at(row, reading.who)
    if reading.who is not None and not id_text(who) and value not in (None, ""):
        raise WrongVerdict(f"it does not say who judged at {reading.who} (--who)")
    values = value if isinstance(value, list) else [value]
    flags = [flag for name, flag in row.items() if name and _plain_name(name) in FINAL_COLUMNS]
    is_final = any(map(_is_yes, flags))
    return Judgement(example_id, [(each, who) for each in values], is_final)


def _is_yes(flag: Any) -> bool:
    try:
        return parse_verdict(flag) is True
    except WrongVerdict:
        return False


def _export_reader(row: Mapping[str, Any]) -> Callable[[Any, str | None], Judgement] | None:
    """What reads a row of a labelling tool's export; None for any other row."""
    if LABEL_STUDIO.recognises(row):
        return _read_label_studio
    if isinstance(row.get("responses"), Mapping):
        return _read_argilla
    if isinstance(row.get("labelled"), Mapping):
        return _read_tracecal
    return None


def _read_tracecal(row: Mapping[str, Any], question: str | None) -> Judgement:
    labelled = row["labelled"]
    if not isinstance(labelled.get("correct", ""), bool | None):
        raise WrongVerdict("its 'labelled' does not say whether it is 'correct'")
    correct = labelled["correct"]
    values = [("unsure" if correct is None else correct, None)]
    return Judgement(_find_id("labelled", labelled), values)


def _read_label_studio(row: Mapping[str, Any], question: str | None) -> Judgement:
    task: Any = LABEL_STUDIO.row_model.model_validate(row)
    annotations = [each for each in task.annotations if not each.was_cancelled]
    final = [annotation for annotation in annotations if annotation.ground_truth]
    by_question: dict[str, list[tuple[Any, Any]]] = {}
    for annotation in final or annotations:
        person = annotation.completed_by
        person = person.get("id") if isinstance(person, dict) else person
        for result in annotation.result or ():
            if (kind := str(result.type).lower()) in ("choices", "rating", "number", "taxonomy"):
                choice = (result.value or {}).get(kind)
                choices = choice if isinstance(choice, list) else [choice]
                answers = by_question.setdefault(str(result.from_name), [])
                answers += [(each, person) for each in choices]
    values = _select_question(by_question, question)
    return Judgement(_find_id("data", task.data), values, bool(final))


def _read_argilla(row: Mapping[str, Any], question: str | None) -> Judgement:
    record = ArgillaRecord.model_validate(row)
    by_question = {
        name: [
            (response.value, response.user_id)
            for response in responses
            if response.value is not None and response.status not in ("draft", "discarded")
        ]
        for name, responses in record.responses.items()
    }
    values = _select_question(by_question, question)
    ids = record.metadata, record.fields, {"example_id": record.id}
    return Judgement(_find_id("metadata", *ids), values)


def _select_question(
    by_question: Mapping[str, list[tuple[Any, Any]]], question: str | None
) -> list[tuple[Any, Any]]:
    """The answers to the named question, or to the only one."""
    if question is not None:
        return by_question.get(question, [])
    if len(by_question) > 1:
        raise WrongVerdict(
            f"it has several questions ({', '.join(by_question)}); name that of the verdict "
            "(--question)"
        )
    return next(iter(by_question.values()), [])


def _find_id(where: str, *places: Mapping[str, Any] | None) -> str:
    """The first id in some objects of a row. Raises `WrongRow`."""
    ids = (id_text((fields or {}).get(name)) for fields in places for name in TOOL_IDS)
    if (example_id := next(filter(None, ids), None)) is None:
        raise WrongRow(f"its {where} hold no {', '.join(TOOL_IDS[:-1])} or {TOOL_IDS[-1]}")
    return example_id
