"""Reading a file of answers from any source: its records, and its invalid rows."""

import csv
import sqlite3
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from tqdm import tqdm

from tracecal.answers.evaluations import PartLabels, without_part_labels
from tracecal.answers.record import Record, as_frame
from tracecal.answers.rows import read_row
from tracecal.answers.settings import Reading
from tracecal.answers.tokens import WrongRow
from tracecal.errors import InputError
from tracecal.io.files import read_sealed
from tracecal.io.input_files import MOST_BYTES, parsed_json, require_regular

MAGIC = b"SQLite format 3\0"


def is_state(path: Path) -> bool:
    """Whether a file is an SQLite database."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def kept_rows(path: Path, most: int, ratio: int) -> Iterator[Any]:
    """The rows of a state, oldest first; raises `sqlite3.Error` where it has no such table, and
    `InputError` where they unpack to more than `most` bytes and `ratio` times those they take.
    """
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        (packed,) = connection.execute("SELECT sum(length(row)) FROM texts").fetchone()
        left = max(most, ratio * (packed or 0))
        for (row,) in connection.execute("SELECT CAST(row AS BLOB) FROM texts ORDER BY place"):
            decoder = zlib.decompressobj()
            text = decoder.decompress(row, left + 1)
            left -= len(text)
            if left < 0:
                raise InputError(
                    f"{path} would unpack to far more than a state of its size holds; give one as "
                    "'tracecal serve --keep-texts' wrote it."
                )
            if not decoder.eof:
                raise zlib.error("a text is cut short")
            yield parsed_json(text)


LISTED = 10
THE_DATA = "the data"  # answers that are of no file
HEADER = "header.json"
MOST_UNPACKED, LARGEST_RATIO = 2**28, 100  # bytes; of larger logs, those to a packed one
# What holds of all the workflow's own traces.
OF_TRACES = {"stop_token": "included", "processed": "no"}
ZSTANDARD = 93  # zip's code of this compression method
UNREADABLE = (
    OSError,
    UnicodeDecodeError,
    csv.Error,
    sqlite3.Error,
    zipfile.BadZipFile,
    pa.ArrowException,
    pl.exceptions.PolarsError,
)
Rows = Iterator[tuple[str, Any]]


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


def listed(wrong: list[str]) -> str:
    """The first of the invalid rows, in one sentence."""
    if not wrong:
        return "It has no rows."
    more = f"; and {len(wrong) - LISTED} more" if len(wrong) > LISTED else ""
    return f"{len(wrong)} invalid row(s): {'; '.join(wrong[:LISTED])}{more}"


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


def _opened(path: Path) -> tuple[Rows, dict[str, str]]:
    """A file's rows, each with its place, and its metadata."""
    openers: dict[str, Callable[[Path], tuple[Rows, dict[str, str]]]] = {
        ".arrow": _arrow,
        ".feather": _arrow,
        ".parquet": _parquet,
        ".csv": _csv,
        ".eval": _inspect_log,
    }
    try:
        return _of_state(path) if is_state(path) else openers.get(path.suffix, _json)(path)
    except UNREADABLE as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise InputError(
            f"{path} cannot be read ({reason}); expected JSON Lines, JSON, CSV, Arrow, "
            "Parquet, an Inspect log or a state with the texts of answers (serve --keep-texts)."
        ) from error


def json_rows(path: Path) -> Rows:
    """The rows of JSON Lines or of one JSON list, each with its place; raises `InputError`."""
    try:
        return _json(path)[0]
    except UNREADABLE as error:
        raise InputError(f"{path} cannot be read ({error}); expected JSON.") from error


def _arrow(path: Path) -> tuple[Rows, dict[str, str]]:
    with pa.ipc.open_file(pa.BufferReader(read_sealed(path))) as file:
        table = file.read_all()
    encoded = table.schema.metadata or {}
    metadata = {key.decode(): value.decode() for key, value in encoded.items()}
    return _numbered(pl.from_arrow(table).iter_rows(named=True)), metadata


def _of_state(path: Path) -> tuple[Rows, dict[str, str]]:
    rows = list(kept_rows(path, MOST_UNPACKED, LARGEST_RATIO))
    if not rows:
        raise InputError(
            f"{path} holds no texts: 'tracecal serve --keep-texts' keeps those of its answers."
        )
    return _numbered(rows), {}


def _csv(path: Path) -> tuple[Rows, dict[str, str]]:
    """Rows of text, where a cell that holds a JSON list or object counts as that."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    return _numbered({name: _cell(text) for name, text in row.items()} for row in rows), {}


def _cell(text: Any) -> Any:
    """A cell's value; null where it is empty or missing."""
    if isinstance(text, str) and text[:1] in ("[", "{"):
        value = _parsed(text)
        return text if isinstance(value, ValueError) else value
    return text or None


def _parquet(path: Path) -> tuple[Rows, dict[str, str]]:
    content = read_sealed(path)
    rows = pl.read_parquet(content).iter_rows(named=True)
    return _numbered(rows), pl.read_parquet_metadata(BytesIO(content))


def _numbered(rows: Iterable[Any]) -> Rows:
    return ((f"row {place}", row) for place, row in enumerate(rows, 1))


def _inspect_log(path: Path) -> tuple[Rows, dict[str, str]]:
    """The samples of an Inspect log: a zip with a JSON file of each."""
    with zipfile.ZipFile(path) as log:
        # Where a sample was written twice, the later one counts.
        files = {file.filename: file for file in log.infolist()}
        unpacked = sum(file.file_size for file in files.values())
        if unpacked > max(MOST_UNPACKED, LARGEST_RATIO * path.stat().st_size):
            raise InputError(
                f"{path} would unpack to {unpacked:,} bytes, far more than a log of its size "
                "holds; give the log as Inspect wrote it."
            )
        header = _parsed(_unpacked(log, files[HEADER])) if HEADER in files else {}
        rows = [
            (name, _with_request(_parsed(_unpacked(log, file)), header))
            for name, file in files.items()
            if name.startswith("samples/")
        ]
    return iter(rows), {}


def _with_request(sample: Any, log: dict[str, Any]) -> Any:
    """A sample of an Inspect log with the generation settings that the log states."""
    request = (log.get("plan") or {}).get("config")
    return sample | {"request": request} if isinstance(sample, dict) else sample


def _unpacked(log: zipfile.ZipFile, file: zipfile.ZipInfo) -> str:
    """A file's text. Python's zipfile reads Zstandard only from version 3.14 on."""
    if file.compress_type != ZSTANDARD:
        return log.read(file).decode()
    packed = copy(file)
    packed.compress_type, packed.file_size = zipfile.ZIP_STORED, file.compress_size
    del packed.CRC  # that of the unpacked text
    with pa.input_stream(pa.py_buffer(log.read(packed)), compression="zstd") as stream:
        content = stream.read()
    if zlib.crc32(content) != file.CRC:
        raise zipfile.BadZipFile(f"the checksum of {file.filename} does not match")
    return content.decode()


def _json(path: Path) -> tuple[Rows, dict[str, str]]:
    """JSON Lines; or one JSON document, a list of rows or an Inspect log."""
    text = path.read_text(encoding="utf-8-sig")
    # Only "\n" ends a row: texts may hold other line separators.
    lines = [(f"line {n}", line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        return iter(()), {}
    single = len(lines) == 1 or isinstance(_parsed(lines[0][1]), ValueError)
    document = _parsed(text) if single else None
    if document is None or isinstance(document, ValueError):
        return ((place, _parsed(line)) for place, line in lines), {}
    rows = document if isinstance(document, list) else [document]
    if isinstance(document, dict) and isinstance(document.get("samples"), list):
        rows = [_with_request(sample, document) for sample in document["samples"]]
    return _numbered(rows), {}


def _parsed(text: str) -> Any:
    try:
        return parsed_json(text)
    except ValueError as error:
        return error
