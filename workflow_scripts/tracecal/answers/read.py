"""Answers of a file or of rows: their records, their labels, and why rows are invalid.

`read_file` opens a file of any kind (`row_file`), reads each row into a record (`row`), and makes a
frame of the records. `sources.read_answers` is the public function.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
from tqdm import tqdm

from tracecal.answers.facts import without_values
from tracecal.answers.parts.labels import PartLabels
from tracecal.answers.reading import Reading
from tracecal.answers.record import Record, as_frame
from tracecal.answers.requests import Requests
from tracecal.answers.row import OneAnswer, answers_of, read_answer
from tracecal.answers.row_file import numbered, open_rows
from tracecal.answers.vocabulary import warn_of_assumed
from tracecal.errors import FailedRequest, InputError, WrongRow, describe_wrong_rows
from tracecal.io.input_files import MOST_BYTES, require_regular
from tracecal.io.log import LOGGER

THE_DATA = "the data"  # the source of answers without a file
# True of all traces of the workflow.
TRACES_READING = {"stop_token": "included", "processed": "no"}
# Whether to keep the row of each answer, or what to keep of an id and its row.
KeepRows = bool | Callable[[str, dict[str, Any]], Any]


@dataclass(frozen=True)
class Answers:
    """Answers, a row per record.

    Attributes
    ----------
    frame
        Columns of `RECORDS`.
    wrong_rows
        Why the other rows are invalid.
    metadata
        How the file was made, where it says so.
    part_labels
        Labels of parts of answers, by the id of the answer.
    rows
        The row of each record, where it was kept.
    source
        The file, for messages.
    """

    frame: pl.DataFrame
    wrong_rows: list[str]
    metadata: dict[str, str]
    part_labels: dict[str, PartLabels] = field(default_factory=dict)
    rows: Sequence[Any] = ()
    source: str = THE_DATA


def read_file(
    path: str | Path,
    reading: Reading | None = None,
    ids: Collection[str] | None = None,
    keep_rows: KeepRows = False,
    progress: bool = False,
) -> Answers:
    """Read the answers of a file; a row is identified by its id, never by its position.

    `ids` are the valid ids; None: any. Raises `InputError` where no answer is usable, or a row is
    invalid and `reading` does not skip it.
    """
    path = Path(path)
    require_regular(path, MOST_BYTES)
    rows, metadata = open_rows(path)
    rows = tqdm(rows, f"Reading {path.name}", unit=" rows", disable=not progress)
    return _read(rows, metadata, str(path), reading or Reading(), ids, keep_rows)


def read_rows(
    rows: Iterable[Any],
    reading: Reading,
    keep_rows: KeepRows = False,
    progress: bool = False,
) -> Answers:
    """Read the answers of rows as JSON Lines hold them; see `read_file`.

    >>> rows = [{"id": "sum", "answer": "5", "logprobs": [-0.25, -0.5]}]
    >>> read_rows(rows, Reading()).frame["surprisal"].to_list()
    [[0.25, 0.5]]
    """
    rows = tqdm(rows, "Reading", unit=" rows", disable=not progress)
    return _read(numbered(rows), {}, THE_DATA, reading, None, keep_rows)


def _read(
    rows: Iterable[tuple[str, Any]],
    metadata: dict[str, str],
    source: str,
    reading: Reading,
    ids: Collection[str] | None,
    keep_rows: KeepRows,
) -> Answers:
    requests = None if reading.requests is None else Requests.read(reading.requests)
    if requests is not None:
        rows = requests.added_to(iter(rows))
    is_run = "schema_version" in metadata
    if is_run:
        reading = _traces_reading(reading, metadata)
    records: dict[str, Record] = {}
    part_labels: dict[str, PartLabels] = {}
    wrong_rows, rows_of_records, has_label = [], [], False
    if ids is not None:  # examples of a task have one answer each
        reading = reading.model_copy(update={"choices": "first"})
    failed_rows: list[str] = []
    empty_paths = dict(reading.columns)  # of named columns, without a value in any row so far
    for location, answer in located_answers(rows, reading, source):
        row, labels = answer.row, answer.part_labels
        empty_paths = without_values(empty_paths, row)
        try:
            record = read_answer(answer, reading)
            has_label = has_label or answer.has_verdict_at(reading.label)
            if is_run:
                record = replace(record, reasoning=metadata.get("reasoning", "none"))
            example_id = record.example_id
            earlier = part_labels.get(example_id)
            if labels and earlier and (merged := earlier.merge(labels)):
                part_labels[example_id] = merged
                continue
            _require_new_id(example_id, records, ids, row)
            records[example_id] = record
            if labels is not None:
                part_labels[example_id] = labels
            if keep_rows:
                rows_of_records.append(row if keep_rows is True else keep_rows(example_id, row))
        except WrongRow as error:
            is_failed = isinstance(error, FailedRequest)
            (failed_rows if is_failed else wrong_rows).append(f"{location}: {error}")
    stopping = wrong_rows if reading.wrong_rows == "stop" else []
    if reading.failed == "stop" and reading.wrong_rows == "stop":
        stopping = stopping + failed_rows
    if stopping:
        remedy = " Requests that failed: --failed skip or incorrect." if failed_rows else ""
        raise InputError(
            f"{source}: {describe_wrong_rows(stopping)}. Correct them, or leave them out with "
            f"--wrong-rows skip.{remedy}"
        )
    if empty_paths:
        name, path = next(iter(empty_paths.items()))
        raise InputError(
            f"{source}: no row has a value at {path} (--columns {name}={path}): correct the path, "
            "or leave the column out."
        )
    wrong_rows += failed_rows
    if not records:
        raise InputError(f"{source} holds no usable answer. {describe_wrong_rows(wrong_rows)}")
    frame = as_frame(records.values())
    if reading.label is not None and not has_label:
        LOGGER.warning("%s: no row has a verdict at --label %s", source, reading.label)
    if requests is not None:
        LOGGER.info("%s", requests.describe(frame.height))
    warn_of_assumed(frame, reading.vocabulary, source)
    return Answers(frame, wrong_rows, metadata, part_labels, rows_of_records, source)


def located_answers(
    rows: Iterable[tuple[str, Any]], reading: Reading, source: str
) -> Iterator[tuple[str, OneAnswer]]:
    """Yield the answers of located rows, each with the place of its row.

    Rows of another filter than that of `reading` are left out.
    """
    n_split = n_answers = 0
    for location, row in rows:
        answers = answers_of(row, reading)
        if answers[0].n_choices > 1:
            n_split, n_answers = n_split + 1, n_answers + answers[0].n_choices
        for answer in answers:
            fields = answer.row if isinstance(answer.row, dict) else {}
            if reading.filter in (None, fields.get("filter", reading.filter)):
                yield location, answer
    if n_split and reading.choices == "first":
        LOGGER.warning("%s: the first of several choices is read in %d rows", source, n_split)
    elif n_split:
        LOGGER.info(
            "%s: %d rows hold %d answers; those of a row are a group", source, n_split, n_answers
        )


def _require_new_id(
    example_id: str, records: Collection[str], ids: Collection[str] | None, row: Any
) -> None:
    if example_id in records:
        hint = ", under another filter: name one as 'filter'" if "filter" in row else ""
        raise WrongRow(f"duplicate id {example_id!r}{hint}")
    if ids is not None and example_id not in ids:
        raise WrongRow(f"no example of the task has the id {example_id!r}")


def _traces_reading(reading: Reading, metadata: dict[str, str]) -> Reading:
    """Complete reading options by the metadata of the workflow's traces."""
    # The workflow separated the tokens of reasoning when it made the traces, or never.
    update = {
        key: value for key, value in TRACES_READING.items() if getattr(reading, key) == "auto"
    }
    model = reading.model or metadata.get("model")
    return reading.model_copy(update=update | {"reasoning": "within", "model": model})
