"""Reading a file of answers."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
from tqdm import tqdm

from tracecal.answers.parts.labels import PartLabels, without_part_labels
from tracecal.answers.reading import Reading
from tracecal.answers.record import Record, as_frame
from tracecal.answers.row import read_row
from tracecal.answers.row_file import _numbered, _opened
from tracecal.answers.wrong_row import WrongRow, listed
from tracecal.errors import InputError
from tracecal.io.input_files import MOST_BYTES, require_regular

THE_DATA = "the data"  # answers that are of no file
# What holds of all the workflow's own traces.
OF_TRACES = {"stop_token": "included", "processed": "no"}


@dataclass(frozen=True)
class Answers:
    """Answers (a row per record, columns of `RECORDS`), and why the other rows are invalid.

    `metadata` says how the file was made, where it says so itself. `of_parts` holds, by the
    answer's id, the labels of parts of answers; `rows` the records' own rows, as the file has them
    or what was made of them, where these were asked for. `where` is the file, in messages.
    """

    frame: pl.DataFrame
    wrong: list[str]
    metadata: dict[str, str]
    of_parts: dict[str, PartLabels] = field(default_factory=dict)
    rows: Sequence[Any] = ()
    where: str = THE_DATA


def read_answers(
    path: str | Path,
    reading: Reading | None = None,
    ids: Collection[str] | None = None,
    with_rows: bool | Callable[[str, dict[str, Any]], Any] = False,
    progress: bool = False,
) -> Answers:
    """The answers of a file, `with_rows` those too, or what it makes of an id and its row. Rows are
    identified by id, never by position.

    `ids` are the valid ones; null: any. Raises `InputError` where the file holds no usable answer,
    or where it has invalid rows and `reading` does not skip them.
    """
    path = Path(path)
    require_regular(path, MOST_BYTES)
    rows, metadata = _opened(path)
    rows = tqdm(rows, f"Reading {path.name}", unit=" rows", disable=not progress)
    return _read(rows, metadata, str(path), reading or Reading(), ids, with_rows)


def answers_of(
    rows: Iterable[Any],
    reading: Reading,
    with_rows: bool | Callable[[str, dict[str, Any]], Any] = False,
    progress: bool = False,
) -> Answers:
    """The answers of rows as a file of JSON Lines would hold them; otherwise as `read_answers`."""
    shown = tqdm(rows, "Reading", unit=" rows", disable=not progress)
    return _read(_numbered(shown), {}, THE_DATA, reading, None, with_rows)


def _read(
    rows: Iterable[tuple[str, Any]],
    metadata: dict[str, str],
    where: str,
    reading: Reading,
    ids: Collection[str] | None,
    with_rows: bool | Callable[[str, dict[str, Any]], Any],
) -> Answers:
    """The answers of rows, each with its place `where` they are from; see `read_answers`."""
    of_run = "schema_version" in metadata
    if of_run:
        reading = _as_traces(reading, metadata)
    records: dict[str, Record] = {}
    of_parts: dict[str, PartLabels] = {}
    wrong, kept = [], []
    for place, row in rows:
        try:
            if isinstance(row, ValueError):
                raise WrongRow(f"it is not JSON ({row})")
            if reading.filter is not None and row.get("filter", reading.filter) != reading.filter:
                continue
            row, labels = without_part_labels(row)
            record = read_row(row, reading)
            if of_run:
                record = replace(record, reasoning=metadata.get("reasoning", "none"))
            known = of_parts.get(record.example_id)
            if labels and known and (both := known.and_of(labels)):
                of_parts[record.example_id] = both
                continue
            _require_new(record.example_id, records, ids, row)
            records[record.example_id] = record
            if labels is not None:
                of_parts[record.example_id] = labels
            if with_rows:
                kept.append(row if with_rows is True else with_rows(record.example_id, row))
        except WrongRow as error:
            wrong.append(f"{place}: {error}")
    if wrong and reading.wrong_rows == "stop":
        raise InputError(
            f"{where}: {listed(wrong)}. Correct them, or leave them out (wrong_rows: skip)."
        )
    if not records:
        raise InputError(f"{where} holds no usable answer. {listed(wrong)}")
    return Answers(as_frame(records.values()), wrong, metadata, of_parts, kept, where)


def _require_new(
    example_id: str, known: Collection[str], ids: Collection[str] | None, row: Any
) -> None:
    if example_id in known:
        hint = ", under another filter: name one as 'filter'" if "filter" in row else ""
        raise WrongRow(f"duplicate id {example_id!r}{hint}")
    if ids is not None and example_id not in ids:
        raise WrongRow(f"no example of the task has the id {example_id!r}")


def _as_traces(reading: Reading, metadata: dict[str, str]) -> Reading:
    """How to read the workflow's own traces, whose metadata say how they were made."""
    # Tokens of reasoning were told apart when the traces were made, or never.
    reading = reading.model_copy(update={"reasoning": "within"})
    unset = {key: value for key, value in OF_TRACES.items() if getattr(reading, key) == "auto"}
    return reading.model_copy(update=unset | {"model": reading.model or metadata.get("model")})
