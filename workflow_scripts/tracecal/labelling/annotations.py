"""Labels from elsewhere: exports of Label Studio and Argilla, and files of `tracecal label`."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tracecal.answers.row_file import json_rows
from tracecal.errors import InputError, WrongRow, describe_wrong_rows
from tracecal.io.input_files import MOST_BYTES, require_regular

# The words of a choice, in any case; ratings are numbers, and boxes to tick truth values.
RIGHT = ("right", "correct", "true", "yes", "c", "1")
WRONG = ("wrong", "incorrect", "false", "no", "i", "0")
UNSURE = ("unsure", "unknown", "skip", "skipped", "?")
VERDICTS = dict.fromkeys(RIGHT, True) | dict.fromkeys(WRONG, False) | dict.fromkeys(UNSURE, None)
# Keys of an answer's id in a task's data, where `id` is the tool's own number.
ID_KEYS = ("example_id", "custom_id", "doc_id")


def read_annotations(
    path: str | Path, question: str | None = None, skip: bool = False
) -> dict[str, bool | None]:
    """Read whether each annotated answer is correct, by id; None where the annotators are unsure.

    `question` names the one that asks for the verdict, where there are several. Tasks without
    annotations are left out. Raises `InputError` where a row is of unknown kind, annotators
    contradict each other or an id comes twice, unless `skip` leaves such rows out.
    """
    require_regular(path, MOST_BYTES)
    labels: dict[str, bool | None] = {}
    errors = []
    for where, row in json_rows(Path(path)):
        try:
            example_id, values = _read_row(row, question)
            if not values:
                continue
            if example_id in labels:
                raise WrongRow(f"duplicate id {example_id!r}")
            labels[example_id] = _combine(example_id, values)
        except WrongRow as error:
            errors.append(f"{where}: {error}")
    if errors and not skip:
        raise InputError(
            f"{path}: {describe_wrong_rows(errors)}. Correct them, or leave them out "
            "(--wrong-rows skip)."
        )
    if not labels:
        raise InputError(f"{path} holds no verdict. {describe_wrong_rows(errors)}")
    return labels


def _read_row(row: Any, question: str | None) -> tuple[str, list[Any]]:
    """An answer's id, and what annotators said of it."""
    if isinstance(row, Mapping) and isinstance(row.get("annotations"), list):
        return _read_label_studio(row, question)
    if isinstance(row, Mapping) and isinstance(row.get("responses"), Mapping):
        return _read_argilla(row, question)
    if isinstance(row, Mapping) and isinstance(row.get("labelled"), Mapping):
        return _read_tracecal(row["labelled"])
    raise WrongRow(
        "it is neither a task of Label Studio's export as JSON (not JSON-MIN), with 'annotations', "
        "nor a record of Argilla's to_json, with 'responses', nor a verdict of 'tracecal label', "
        "with 'labelled'"
    )


def _read_tracecal(labelled: Mapping[str, Any]) -> tuple[str, list[Any]]:
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
    values = (data[key] for key in ID_KEYS if data.get(key) not in (None, ""))
    value = next(values, None)
    return None if value is None else str(value)


def _find_id(data: Mapping[str, Any], where: str) -> str:
    if (example_id := _id(data)) is None:
        raise WrongRow(f"its {where} hold no {', '.join(ID_KEYS[:-1])} or {ID_KEYS[-1]}")
    return example_id


def _combine(example_id: str, values: Iterable[Any]) -> bool | None:
    """The verdict of all annotators who are sure."""
    verdicts = {_verdict(value) for value in values} - {None}
    if len(verdicts) > 1:
        raise WrongRow(f"annotators contradict each other on {example_id!r}")
    return next(iter(verdicts), None)


def _verdict(value: Any) -> bool | None:
    word = str(value).strip().casefold()
    if word not in VERDICTS:
        raise WrongRow(
            f"its verdict {value!r} is none of {', '.join(RIGHT)}; {', '.join(WRONG)}; "
            f"{', '.join(UNSURE)}"
        )
    return VERDICTS[word]
