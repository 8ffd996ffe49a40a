"""The rows of a file of answers, whatever kind of file it is.

`open_rows(path)` gives the rows, each with its place for messages, and the metadata of the file.
The suffix decides, and anything else is read as JSON Lines or JSON.
"""

import csv
import sqlite3
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from copy import copy
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from tracecal.errors import InputError
from tracecal.io.files import read_sealed
from tracecal.io.input_files import parsed_json
from tracecal.io.parquet_files import require_bounded
from tracecal.io.sqlite_files import require_tables

HEADER = "header.json"
MOST_UNPACKED, LARGEST_RATIO = 2**28, 100  # bytes; of larger logs, those to a packed one
MAGIC = b"SQLite format 3\0"  # first bytes of an SQLite file
SEPARATORS = ",;\t"  # of the columns of a table
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
Metadata = dict[str, str]


def open_rows(path: Path) -> tuple[Rows, Metadata]:
    """The rows of a file, each with its place, and the metadata. Raises `InputError`.

    A row that is not JSON is the `ValueError` that says why.
    """
    readers: dict[str, Callable[[Path], tuple[Rows, Metadata]]] = {
        ".arrow": _read_arrow,
        ".feather": _read_arrow,
        ".parquet": _read_parquet,
        ".csv": _read_csv,
        ".tsv": _read_csv,
        ".eval": _read_inspect_log,
    }
    try:
        return _read_state(path) if _is_sqlite(path) else readers.get(path.suffix, _read_json)(path)
    except UNREADABLE as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise InputError(
            f"{path} cannot be read ({reason}); expected JSON Lines, JSON, CSV, TSV, Arrow, "
            "Parquet, an Inspect log or a state with the texts of answers (serve --keep-texts)."
        ) from error


def json_rows(path: Path) -> Rows:
    """The rows of JSON Lines or of one JSON list, each with its place. Raises `InputError`."""
    try:
        return _read_json(path)[0]
    except UNREADABLE as error:
        raise InputError(f"{path} cannot be read ({error}); expected JSON.") from error


def numbered(rows: Iterable[Any]) -> Rows:
    """The rows, each with its number as its place.

    >>> list(numbered([{"id": "a"}]))
    [('row 1', {'id': 'a'})]
    """
    return ((f"row {number}", row) for number, row in enumerate(rows, 1))


def _is_sqlite(path: Path) -> bool:
    """Whether a file is an SQLite database."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _read_arrow(path: Path) -> tuple[Rows, Metadata]:
    with pa.ipc.open_file(pa.BufferReader(read_sealed(path))) as file:
        table = file.read_all()
    encoded = table.schema.metadata or {}
    metadata = {key.decode(): value.decode() for key, value in encoded.items()}
    return numbered(pl.from_arrow(table).iter_rows(named=True)), metadata


def _read_parquet(path: Path) -> tuple[Rows, Metadata]:
    content = read_sealed(path)
    require_bounded(content, path)
    rows = pl.read_parquet(content).iter_rows(named=True)
    return numbered(rows), pl.read_parquet_metadata(BytesIO(content))


def _read_state(path: Path) -> tuple[Rows, Metadata]:
    """The texts of answers in the state of `tracecal serve --keep-texts`, an SQLite file."""
    rows = list(_read_texts(path))
    if not rows:
        raise InputError(
            f"{path} holds no texts: 'tracecal serve --keep-texts' keeps those of its answers."
        )
    return numbered(rows), {}


def _read_texts(path: Path) -> Iterator[Any]:
    """The rows of a state, oldest first.

    Raises ``sqlite3.Error`` where it has no table of texts, and `InputError` where they unpack to
    more than MOST_UNPACKED bytes and LARGEST_RATIO times their packed size.
    """
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        require_tables(connection, path)
        (packed,) = connection.execute("SELECT sum(length(row)) FROM texts").fetchone()
        n_bytes_left = max(MOST_UNPACKED, LARGEST_RATIO * (packed or 0))
        for (row,) in connection.execute("SELECT CAST(row AS BLOB) FROM texts ORDER BY place"):
            decoder = zlib.decompressobj()
            text = decoder.decompress(row, n_bytes_left + 1)
            n_bytes_left -= len(text)
            if n_bytes_left < 0:
                raise InputError(
                    f"{path} would unpack to far more than a state of its size holds; give one as "
                    "'tracecal serve --keep-texts' wrote it."
                )
            if not decoder.eof:
                raise zlib.error("a text is cut short")
            yield parsed_json(text)


def _read_csv(path: Path) -> tuple[Rows, Metadata]:
    """Rows of text, where a cell that holds a JSON list or object counts as that."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        separator = _separator(file.readline())
        file.seek(0)
        rows = list(csv.DictReader(file, delimiter=separator, strict=True))
    return numbered({name: _cell_value(text) for name, text in row.items()} for row in rows), {}


def _separator(header: str) -> str:
    """The separator that makes most columns of a table's first line.

    >>> _separator('id;"answer, if any";correct')
    ';'
    """
    return max(SEPARATORS, key=lambda mark: len(next(csv.reader([header], delimiter=mark), ())))


def _cell_value(text: Any) -> Any:
    """The value of a cell; None where it is empty or missing."""
    if isinstance(text, str) and text[:1] in ("[", "{"):
        value = _parse(text)
        return text if isinstance(value, ValueError) else value
    return text or None


def _read_json(path: Path) -> tuple[Rows, Metadata]:
    """JSON Lines; or one JSON document, a list of rows or an Inspect log."""
    text = path.read_text(encoding="utf-8-sig")
    # Only "\n" ends a row: texts may hold other line separators.
    lines = [(f"line {n}", line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        return iter(()), {}
    single = len(lines) == 1 or isinstance(_parse(lines[0][1]), ValueError)
    document = _parse(text) if single else None
    if document is None or isinstance(document, ValueError):
        return ((location, _parse(line)) for location, line in lines), {}
    rows = document if isinstance(document, list) else [document]
    if isinstance(document, dict) and isinstance(document.get("samples"), list):
        rows = [_with_request(sample, document) for sample in document["samples"]]
    return numbered(rows), {}


def _read_inspect_log(path: Path) -> tuple[Rows, Metadata]:
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
        header = _parse(_unpack(log, files[HEADER])) if HEADER in files else {}
        rows = [
            (name, _with_request(_parse(_unpack(log, file)), header))
            for name, file in files.items()
            if name.startswith("samples/")
        ]
    return iter(rows), {}


def _with_request(sample: Any, log: dict[str, Any]) -> Any:
    """A sample of an Inspect log with the generation settings that the log states."""
    request = (log.get("plan") or {}).get("config")
    return sample | {"request": request} if isinstance(sample, dict) else sample


def _unpack(log: zipfile.ZipFile, file: zipfile.ZipInfo) -> str:
    """The text of a file. Python's zipfile reads Zstandard only from version 3.14 on."""
    if file.compress_type != ZSTANDARD:
        return log.read(file).decode()
    stored = copy(file)
    stored.compress_type, stored.file_size = zipfile.ZIP_STORED, file.compress_size
    del stored.CRC  # of the unpacked text
    with pa.input_stream(pa.py_buffer(log.read(stored)), compression="zstd") as stream:
        content = stream.read()
    if zlib.crc32(content) != file.CRC:
        raise zipfile.BadZipFile(f"the checksum of {file.filename} does not match")
    return content.decode()


def _parse(text: str) -> Any:
    """The value of JSON text, or the error that says why it is none."""
    try:
        return parsed_json(text)
    except ValueError as error:
        return error
