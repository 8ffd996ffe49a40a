"""Separate files of verdicts, joined to answers by id.

1. `read_labels("labels.csv")` reads whether answers are correct, by their ids: from a table or JSON
   Lines, from an export of Label Studio or Argilla, or from a file of `tracecal label`.
2. `with_labels(answers, labels)` replaces the answers' verdicts, and says how many matched.

`labels.csv:custom_id:verdict` names the columns, which are otherwise found by their names.
"""

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

import polars as pl

from tracecal.answers.facts import is_unsure, parse_verdict, whole_id
from tracecal.answers.log_file import open_rows, require_json
from tracecal.errors import InputError, WrongRow, describe_wrong_rows, some_of
from tracecal.io.input_files import MOST_BYTES, require_regular
from tracecal.io.log import LOGGER

# Columns that may hold the id and the verdict, in small letters, in the order of preference. In
# exports of tools `id` is the tool's own number.
ID_COLUMNS = ("example_id", "custom_id", "doc_id", "sample_id", "answer_id", "request_id", "id")
VERDICT_COLUMNS = (
    *("correct", "is_correct", "verdict", "label", "judgement", "judgment", "right", "choice"),
    *("passed", "pass", "grade", "accuracy", "acc", "score", "rating"),
)
TOOL_IDS = ID_COLUMNS[:-1]
MOST_ROWS, MOST_DEPTH = 100, 5  # of rows of answers, in which ids are looked for


@dataclass(frozen=True)
class Labels:
    """Verdicts by the ids of answers; None where the person is unsure.

    Attributes
    ----------
    source
        The file, for messages.
    columns
        The columns of the id and of the verdict; None where the file is an export.
    rows
        The rows of a table, to look for other columns of ids.
    """

    by_id: Mapping[str, bool | None]
    source: str
    columns: tuple[str, str] | None = None
    rows: Sequence[Mapping[str, Any]] = field(default=(), repr=False)


def read_labels(
    spec: str | Path,
    right_from: float | None = None,
    question: str | None = None,
    skip: bool = False,
) -> Labels:
    """Read the verdicts of a file; rows without one are left out.

    Parameters
    ----------
    spec
        The file's path, or ``PATH:ID:VERDICT`` with the names of two columns.
    right_from
        The smallest number of a correct answer, where verdicts are scores.
    question
        The question of an export that asks for the verdict, where there are several.
    skip
        Whether to leave out rows that cannot be read, and answers whose verdicts contradict each
        other.

    Raises
    ------
    InputError
        Where the file holds no verdict, the columns are not found, or a row is wrong.
    """
    path, columns = _split_spec(str(spec))
    require_regular(path, MOST_BYTES)
    rows = list(open_rows(Path(path))[0])
    objects = [row for _, row in rows if isinstance(row, Mapping)]
    exported = next((read_export for row in objects if (read_export := _export_reader(row))), None)
    if columns is not None:
        _require_columns(columns, objects, path)
    elif exported is None and objects:
        columns = _find_columns(objects, path)
    labels: dict[str, bool | None] = {}
    errors, places, contradicted = [], dict[str, str](), set[str]()
    for location, row in rows:
        try:
            require_json(row)
            if not isinstance(row, Mapping):
                raise WrongRow("it is no row of a table and no JSON object")
            if columns is not None:
                example_id, values = _read_columns(row, *columns)
            elif read_export := _export_reader(row):
                example_id, values = read_export(row, question)
            else:
                raise WrongRow("it is unlike the rows before it, which are of a labelling tool")
            verdict = _combined(example_id, values, right_from)
            if verdict is MISSING:
                continue
            if labels.get(example_id, verdict) is not verdict:
                contradicted.add(example_id)
                raise WrongRow(
                    f"its verdict on {example_id!r} contradicts the one of {places[example_id]}"
                )
            labels[example_id] = verdict
            places.setdefault(example_id, location)
        except WrongRow as error:
            errors.append(f"{location}: {error}")
    if errors and not skip:
        raise InputError(
            f"{path}: {describe_wrong_rows(errors)}. Correct them, or leave them out with "
            "--wrong-rows skip."
        )
    labels = {name: labels[name] for name in labels if name not in contradicted}
    if errors and labels:
        LOGGER.warning("%s: left out %s", path, describe_wrong_rows(errors))
    if not labels:
        reasons = describe_wrong_rows(errors) if errors else f"It has {len(rows)} rows without one."
        raise InputError(f"{path} holds no verdict. {reasons}")
    return Labels(labels, path, columns, [] if exported else objects)


MISSING = object()  # no verdict


def with_labels(
    answers: pl.DataFrame, labels: Labels, rows: Iterable[Any] = ()
) -> tuple[pl.DataFrame, str]:
    """Replace the verdicts of answers (columns of `RECORDS`).

    Answers that the file does not hold have none. Returns also a sentence on what matched. Raises
    `InputError` where nothing does, which names the path of the ids in the answers' `rows`.
    """
    ids = answers["example_id"]
    matched = [name for name in ids if name in labels.by_id]
    if not matched:
        path = find_id_path(rows, labels.by_id)
        raise InputError(_explain_no_match(labels, set(ids), len(ids), path))
    verdicts = pl.DataFrame(
        {"example_id": matched, "correct": [labels.by_id[name] is True for name in matched]},
        schema={"example_id": pl.String, "correct": pl.Boolean},
    ).with_columns(unsure=pl.Series([labels.by_id[name] is None for name in matched]))
    joined = answers.drop("correct", "unsure").join(
        verdicts, on="example_id", how="left", maintain_order="left"
    )
    joined = joined.with_columns(pl.col("unsure").fill_null(False)).select(answers.columns)
    return joined, _describe_match(joined, labels)


def _describe_match(answers: pl.DataFrame, labels: Labels) -> str:
    """How many verdicts matched, and which ids on either side did not."""
    labelled = answers.drop_nulls("correct")
    n_wrong = int((~labelled["correct"]).sum())
    n_unsure = int(labelled["unsure"].sum())
    unsure = f", {n_unsure} of them unsure" if n_unsure else ""
    sentence = (
        f"{labels.source}: {labelled.height} of {answers.height} answers have a verdict "
        f"({n_wrong} wrong{unsure})"
    )
    if labels.columns:
        sentence += ", by the columns {} and {}".format(*labels.columns)
    if unlabelled := answers.filter(pl.col("correct").is_null())["example_id"].to_list():
        sentence += f"; {len(unlabelled)} answers have none ({some_of(unlabelled)})"
    present = set(answers["example_id"])
    if unknown := [name for name in labels.by_id if name not in present]:
        sentence += f"; {len(unknown)} verdicts are on no answer ({some_of(unknown)})"
    return sentence


def find_id_path(rows: Iterable[Any], ids: Collection[str]) -> str | None:
    """The path in the first rows at which most different `ids` stand; None for fewer than two.

    >>> find_id_path([{"meta": {"key": "q1"}}, {"meta": {"key": "q2"}}], ["q1", "q2", "q3"])
    'meta.key'
    """
    ids_at_path: dict[str, set[str]] = {}
    for row in islice(rows, MOST_ROWS):
        for path, value in _leaves(row):
            if (example_id := _text(value)) in ids:
                ids_at_path.setdefault(path, set()).add(example_id)
    path = max(ids_at_path, key=lambda path: len(ids_at_path[path]), default=None)
    return path if path is not None and len(ids_at_path[path]) > 1 else None


def _leaves(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The texts and whole numbers of nested objects, each with its path."""
    if isinstance(value, Mapping) and depth < MOST_DEPTH:
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name), depth + 1)
    elif isinstance(value, str | int):
        yield path, value


def _plain(example_id: str) -> str:
    """An id without case, outer blanks and the Unicode form of its letters."""
    return unicodedata.normalize("NFC", example_id.strip()).casefold()


def _explain_no_match(
    labels: Labels, ids: Collection[str], n_answers: int, path: str | None
) -> str:
    sentence = (
        f"{labels.source}: none of its {len(labels.by_id)} ids ({some_of([*labels.by_id])}) is the "
        f"id of one of the {n_answers} answers ({some_of(sorted(ids))})"
    )
    if {*map(_plain, labels.by_id)} & {*map(_plain, ids)}:
        return (
            f"{sentence}: some differ in case, outer blanks or the Unicode form of their letters "
            "(NFC or NFD) alone; write them as the answers have them."
        )
    if path is not None:
        return f"{sentence}: they stand in the answers' rows as {path}; add --id {quote(path)}."
    if labels.columns is None:
        return f"{sentence}: give the answers' ids to the labelling tool."
    id_column, verdict_column = labels.columns
    for name in labels.rows[0] if labels.rows else ():
        if any(_text(row.get(name)) in ids for row in labels.rows):
            id_column = name
            break
    else:
        id_column = "ID"
    spec = quote(f"{labels.source}:{id_column}:{verdict_column}")
    return (
        f"{sentence}: name the columns, as in --labels {spec}, or the path of the answers' ids "
        "with --id."
    )


def _split_spec(spec: str) -> tuple[str, tuple[str, str] | None]:
    """The path, and the columns where they are named."""
    if Path(spec).exists():
        return spec, None
    path, *columns = spec.rsplit(":", 2)
    if len(columns) == 2 and all(columns):
        return path, (columns[0], columns[1])
    return spec, None


def _find_columns(rows: Sequence[Mapping[str, Any]], path: str) -> tuple[str, str]:
    """The columns of the id and of the verdict, by their names."""
    names = {str(name).strip().casefold(): name for row in rows[:100] for name in row if name}
    example_id = next((names[name] for name in ID_COLUMNS if name in names), None)
    verdict = next((names[name] for name in VERDICT_COLUMNS if name in names), None)
    if example_id is None or verdict is None:
        lacking = "id" if example_id is None else "verdict"
        example_id, verdict = example_id or "ID", verdict or "VERDICT"
        raise InputError(
            f"{path}: no column looks like the {lacking} among {some_of([*names.values()], 12)}: "
            f"name both, as in --labels {quote(f'{path}:{example_id}:{verdict}')}."
        )
    return example_id, verdict


def _require_columns(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], path: str) -> None:
    """Raise `InputError` for a named column that no row has."""
    for name in columns:
        if rows and not any(name in row for row in rows):
            raise InputError(
                f"{path}: no row has the column {name}; there are {some_of([*rows[0]], 12)}."
            )


def _read_columns(row: Mapping[str, Any], id_column: str, column: str) -> tuple[str, list[Any]]:
    for name in (id_column, column):
        if name not in row:
            raise WrongRow(f"it has no column {name}, only {some_of([*row], 12)}")
    value, example_id = row[column], _text(row[id_column])
    if not example_id and value not in (None, ""):
        raise WrongRow(f"its {id_column} is empty")
    return example_id, [value]


def _text(value: Any) -> str:
    """An id as text; 3.0 is 3, as a table writes whole numbers in a column with gaps."""
    if isinstance(value, float) and value.is_integer():
        value = whole_id(value)
    return "" if value is None else str(value).strip()


def _export_reader(row: Mapping[str, Any]) -> Any:
    """What reads a row of a labelling tool's export; None for any other row."""
    if isinstance(row.get("annotations"), list):
        return _read_label_studio
    if isinstance(row.get("responses"), Mapping):
        return _read_argilla
    if isinstance(row.get("labelled"), Mapping):
        return _read_tracecal
    return None


def _read_tracecal(row: Mapping[str, Any], question: str | None) -> tuple[str, list[Any]]:
    labelled = row["labelled"]
    if not isinstance(labelled.get("correct", ""), bool | None):
        raise WrongRow("its 'labelled' does not say whether it is 'correct'")
    correct = labelled["correct"]
    return _find_id(labelled, "labelled"), ["unsure" if correct is None else correct]


def _read_label_studio(task: Mapping[str, Any], question: str | None) -> tuple[str, list[Any]]:
    by_question: dict[str, list[Any]] = {}
    for annotation in task["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        for result in annotation.get("result") or ():
            kind, value = result.get("type"), result.get("value") or {}
            if kind in ("choices", "rating"):
                choice = value.get(kind)
                choices = choice if isinstance(choice, list) else [choice]
                by_question.setdefault(str(result.get("from_name")), []).extend(choices)
    values = _select_question(by_question, question)
    return _find_id(task.get("data") or {}, "data"), values


def _read_argilla(record: Mapping[str, Any], question: str | None) -> tuple[str, list[Any]]:
    by_question = {
        name: [response["value"] for response in responses if response.get("value") is not None]
        for name, responses in record["responses"].items()
    }
    for data in (record.get("metadata"), record.get("fields"), {"example_id": record.get("id")}):
        if example_id := _id(data or {}):
            return example_id, _select_question(by_question, question)
    return _find_id({}, "metadata"), []


def _select_question(by_question: Mapping[str, list[Any]], question: str | None) -> list[Any]:
    """The answers to the named question, or to the only one."""
    if question is not None:
        return by_question.get(question, [])
    if len(by_question) > 1:
        raise WrongRow(
            f"it has several questions ({', '.join(by_question)}); name that of the verdict "
            "(--question)"
        )
    return next(iter(by_question.values()), [])


def _id(data: Mapping[str, Any]) -> str | None:
    return next(filter(None, (_text(data.get(key)) for key in TOOL_IDS)), None)


def _find_id(data: Mapping[str, Any], where: str) -> str:
    if (example_id := _id(data)) is None:
        raise WrongRow(f"its {where} hold no {', '.join(TOOL_IDS[:-1])} or {TOOL_IDS[-1]}")
    return example_id


def _combined(example_id: str, values: Sequence[Any], right_from: float | None) -> Any:
    """The verdict of all who are sure, None where none is, MISSING where nobody judged."""
    judged = [value for value in values if parse_verdict(value, right_from) is not None]
    sure = {parse_verdict(value, right_from) for value in judged if not is_unsure(value)}
    if len(sure) > 1:
        raise WrongRow(f"annotators contradict each other on {example_id!r}")
    return next(iter(sure), None) if judged else MISSING
