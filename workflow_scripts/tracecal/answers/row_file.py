"""The rows of a file of answers."""

import csv
import sqlite3
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from tracecal.answers.proxy_texts import is_state, kept_rows
from tracecal.errors import InputError
from tracecal.io.files import read_sealed
from tracecal.io.input_files import parsed_json

HEADER = "header.json"
MOST_UNPACKED, LARGEST_RATIO = 2**28, 100  # bytes; of larger logs, those to a packed one
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
