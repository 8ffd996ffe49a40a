"""Verdicts from annotation tools' exports, Label Studio's JSON and Argilla's `records.to_json`, and
from files of `tracecal label`."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tracecal.answers.row_file import json_rows
from tracecal.answers.wrong_row import WrongRow, describe_wrong_rows
from tracecal.errors import InputError
from tracecal.io.input_files import MOST_BYTES, require_regular

# The words of a choice, in any case; a rating or a box to tick gives numbers and truth values.
RIGHT = ("right", "correct", "true", "yes", "c", "1")
WRONG = ("wrong", "incorrect", "false", "no", "i", "0")
UNSURE = ("unsure", "unknown", "skip", "skipped", "?")
VERDICTS = dict.fromkeys(RIGHT, True) | dict.fromkeys(WRONG, False) | dict.fromkeys(UNSURE, None)
# An answer's id among an annotated task's data; `id` itself is the tool's own number.
IDS = ("example_id", "custom_id", "doc_id")


def read_annotations(
    path: str | Path, question: str | None = None, skip: bool = False
) -> dict[str, bool | None]:
    """Whether each annotated answer is correct, by its id; null where the annotators are unsure.

    `question` names the one that asks for the verdict, where there are several. Tasks that nobody
    annotated are left out. Raises `InputError` where a row is of no known kind, annotators
    contradict each other or an id comes twice, unless `skip` leaves such rows out.
    """
    require_regular(path, MOST_BYTES)
    found: dict[str, bool | None] = {}
    wrong = []
    for place, row in json_rows(Path(path)):
        try:
            example, values = _annotated(row, question)
            if not values:
                continue
            if example in found:
                raise WrongRow(f"duplicate id {example!r}")
            found[example] = _one(example, values)
        except WrongRow as error:
            wrong.append(f"{place}: {error}")
    if wrong and not skip:
        raise InputError(
            f"{path}: {describe_wrong_rows(wrong)}. Correct them, or leave them out "
            "(--wrong-rows skip)."
        )
    if not found:
        raise InputError(f"{path} holds no verdict. {describe_wrong_rows(wrong)}")
    return found


def _annotated(row: Any, question: str | None) -> tuple[str, list[Any]]:
    """A task's answer and what annotators said of it."""
    if isinstance(row, Mapping) and isinstance(row.get("annotations"), list):
        return _label_studio(row, question)
    if isinstance(row, Mapping) and isinstance(row.get("responses"), Mapping):
        return _argilla(row, question)
    if isinstance(row, Mapping) and isinstance(row.get("labelled"), Mapping):
        return _own(row["labelled"])
    raise WrongRow(
        "it is neither a task of Label Studio's export as JSON (not JSON-MIN), with 'annotations', "
        "nor a record of Argilla's to_json, with 'responses', nor a verdict of 'tracecal label', "
        "with 'labelled'"
    )


def _own(labelled: Mapping[str, Any]) -> tuple[str, list[Any]]:
    if not isinstance(labelled.get("correct", ""), bool | None):
        raise WrongRow("its 'labelled' does not say whether it is 'correct'")
    correct = labelled["correct"]
    return _id(labelled) or _missing("labelled"), ["unsure" if correct is None else correct]


def _label_studio(task: Mapping[str, Any], question: str | None) -> tuple[str, list[Any]]:
    done = [one for one in task["annotations"] if not one.get("was_cancelled")]
    by_question: dict[str, list[Any]] = {}
    for annotation in done:
        for result in annotation.get("result") or ():
            kind, value = result.get("type"), result.get("value") or {}
            if kind in ("choices", "rating"):
                chosen = value.get(kind)
                chosen = chosen if isinstance(chosen, list) else [chosen]
                by_question.setdefault(str(result.get("from_name")), []).extend(chosen)
    values = _asked(by_question, question)
    return _id(task.get("data") or {}) or _missing("data"), values


def _argilla(record: Mapping[str, Any], question: str | None) -> tuple[str, list[Any]]:
    by_question = {
        name: [one.get("value") for one in given if one.get("value") is not None]
        for name, given in record["responses"].items()
    }
    named = _id(record.get("metadata") or {}) or _id(record.get("fields") or {})
    own = record.get("id")
    example = named or (str(own) if own not in (None, "") else _missing("metadata"))
    return example, _asked(by_question, question)


def _asked(by_question: Mapping[str, list[Any]], question: str | None) -> list[Any]:
    """The answers to the one question, or to the named one."""
    if question is not None:
        return by_question.get(question, [])
    if len(by_question) > 1:
        raise WrongRow(
            f"it has several questions ({', '.join(by_question)}); name that of the verdict "
            "(--question)"
        )
    return next(iter(by_question.values()), [])


def _id(data: Mapping[str, Any]) -> str | None:
    value = next((data[name] for name in IDS if data.get(name) not in (None, "")), None)
    return None if value is None else str(value)


def _missing(where: str) -> str:
    raise WrongRow(f"its {where} hold no {', '.join(IDS[:-1])} or {IDS[-1]}")


def _one(example: str, values: Iterable[Any]) -> bool | None:
    """The verdict on which all who are sure agree."""
    verdicts = {_verdict(value) for value in values} - {None}
    if len(verdicts) > 1:
        raise WrongRow(f"annotators contradict each other on {example!r}")
    return next(iter(verdicts), None)


def _verdict(value: Any) -> bool | None:
    word = str(value).strip().casefold()
    if word not in VERDICTS:
        raise WrongRow(
            f"its verdict {value!r} is none of {', '.join(RIGHT)}; {', '.join(WRONG)}; "
            f"{', '.join(UNSURE)}"
        )
    return VERDICTS[word]
