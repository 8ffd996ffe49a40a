"""A log file: its rows, whatever kind of file it is, and the answers that streams hold in pieces.

1. `open_rows(path)` gives the rows, each with its place for messages, and the metadata of the file.
   The suffix decides, and anything else is read as JSON Lines, JSON or a saved stream. Texts may be
   packed (`.gz`, `.zst`), and in UTF-16. Tables may have a title, or be an Excel workbook.
2. `join_rows(rows)` joins the pieces of streams among them, which servers send as server-sent
   events, as `curl -N` prints them, or as JSON, one a line or in a list.
3. `read_stream(text)` reads either from a text.
"""

import csv
import os
import re
import zipfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from io import BytesIO, StringIO
from itertools import chain, islice, zip_longest
from pathlib import Path
from statistics import median_low
from typing import Any

import orjson
import polars as pl
import pyarrow as pa

from tracecal.answers.column_paths import column_paths
from tracecal.answers.formats.layout import Row
from tracecal.answers.formats.layouts import FORMATS, LAYOUTS
from tracecal.answers.formats.stream import IDS, Joined, Stream
from tracecal.answers.raw_answer import stated_error
from tracecal.errors import InputError, WrongRow, describe_wrong_rows
from tracecal.io.files import read_sealed
from tracecal.io.input_files import MOST_BYTES, parsed_json, parsed_json_sequence
from tracecal.io.log import LOGGER
from tracecal.io.parquet_files import require_bounded
from tracecal.io.regular_files import open_regular, read_regular

HEADER = "header.json"
MOST_UNPACKED, LARGEST_RATIO = 2**28, 100  # bytes; beyond that, bytes per packed byte
PIECE = 2**20  # bytes that are unpacked at once
PACKED = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
# Marks at the beginning of a text that say how it is encoded; UTF-32's begins with UTF-16's.
ENCODINGS = {
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
SHARED = ("model", "request")  # what a document may state once for all its rows
SEPARATORS = ",;\t|"  # of the columns of a table
MOST_KEYS = 3  # below which rows of a document are looked for
MOST_TITLES = 20  # lines in which the head of a table is looked for
ZSTANDARD = 93  # zip's code of this compression method
UNREADABLE = (
    OSError,
    UnicodeDecodeError,
    csv.Error,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,  # zipfile's, for an encrypted file or an unknown compression
    pa.ArrowException,
    pl.exceptions.PolarsError,
)
Rows = Iterator[tuple[str, Any]]
Metadata = dict[str, str]
DONE = "[DONE]"  # the event that ends an answer
STREAMS = [layout.stream for layout in LAYOUTS.values() if layout.stream is not None]
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?(?:\r\n|\n|\r)', re.I)  # Excel's, above the head
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG = b"0" * 19
_KEY_ENDS = (b"\\u0022", b"\\u003a", b"\\u003A")  # which orjson would write as '":'
_CONTROLS = {chr(code) for code in range(9)}  # which no text has
_EVENT_END = re.compile(r"(?:\r\n|\n|\r(?!\n)){2,}")
_LINE_END = re.compile(r"\r\n|\n|\r")


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
        **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".ods"), _read_excel),
        ".eval": _read_inspect_log,
    }
    suffix = path.with_suffix("").suffix if path.suffix in PACKED else path.suffix
    reader = readers.get(suffix, _read_json)
    if path.suffix in PACKED and reader not in (_read_csv, _read_json):
        raise InputError(f"{path} is a packed {suffix} file; unpack it first.")
    try:
        return reader(path)
    except UNREADABLE as error:
        raise _unreadable(path, error) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # polars', which is no `Exception`
            raise
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: BaseException) -> InputError:
    reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
    return InputError(
        f"{path} cannot be read ({reason}); expected JSON Lines, JSON, CSV, TSV, Excel, Arrow, "
        "Parquet or an Inspect log."
    )


def require_json(row: Any) -> None:
    """Raise `WrongRow` for a row that is an error instead, as `open_rows` gives it."""
    if isinstance(row, ValueError) and not isinstance(row, WrongRow):
        raise WrongRow(f"it is not JSON ({row})")
    if isinstance(row, WrongRow):
        raise row


def require_right_rows(
    source: str, wrong_rows: Sequence[str], wrong_verdicts: Sequence[str], skip: bool
) -> None:
    """Raise `InputError` for wrong rows; where `skip` leaves them out, for wrong verdicts alone.

    Both are places and reasons, and the verdicts are among the rows.

    >>> require_right_rows("labels.csv", ["line 2: it has no id"], [], skip=True)
    """
    if stopping := wrong_verdicts if skip else wrong_rows:
        remedy = "" if stopping == wrong_verdicts else ", or leave them out with --wrong-rows skip"
        raise InputError(f"{source}: {describe_wrong_rows(stopping)}. Correct them{remedy}.")


def numbered(rows: Iterable[Any]) -> Rows:
    """The rows, each with its number as its place.

    >>> list(numbered([{"id": "a"}]))
    [('row 1', {'id': 'a'})]
    """
    return ((f"row {number}", row) for number, row in enumerate(rows, 1))


def _read_arrow(path: Path) -> tuple[Rows, Metadata]:
    with pa.ipc.open_file(pa.BufferReader(read_sealed(path))) as file:
        table = file.read_all()
    table.validate(full=True)  # offsets that were changed would be read outside of the file
    encoded = table.schema.metadata or {}
    metadata = {key.decode(): value.decode() for key, value in encoded.items()}
    return numbered(_rows_of_frame(pl.from_arrow(table), path)), metadata


def _read_parquet(path: Path) -> tuple[Rows, Metadata]:
    content = read_sealed(path)
    require_bounded(content, path)
    rows = _rows_of_frame(pl.read_parquet(content), path)
    return numbered(rows), pl.read_parquet_metadata(BytesIO(content))


def _rows_of_frame(frame: pl.DataFrame, path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a table. Raises `InputError` for a value that Python has not: the year 148108."""
    try:
        yield from frame.iter_rows(named=True)
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{path} cannot be read ({error}); leave out the columns of times that nothing reads."
        ) from error


def _read_csv(path: Path) -> tuple[Rows, Metadata]:
    """Rows of text, where a cell that holds a JSON list or object counts as that."""
    text = _table_text(path)
    separator_line = _SEPARATOR_LINE.match(text)
    text = text[separator_line.end() :] if separator_line else text
    csv.field_size_limit(MOST_BYTES)  # else cells of more than 131,072 characters are an error
    marks = separator_line[1] if separator_line else SEPARATORS
    lines = StringIO(text, newline="")
    separator = max(marks, key=lambda mark: _head_of(lines, mark))
    lines.seek(0)
    rows = list(csv.reader(lines, delimiter=separator, strict=True))
    return numbered(_rows_of_cells(rows, path)), {}


def _head_of(lines: StringIO, separator: str) -> tuple[int, int]:
    """How many cells the head of a table with this separator has, and how early it stands."""
    lines.seek(0)
    rows = list(islice(csv.reader(lines, delimiter=separator), MOST_TITLES))
    n_above = _title_rows(rows)
    return len(rows[n_above]) if rows else 0, -n_above


def _title_rows(rows: Sequence[Sequence[Any]]) -> int:
    """How many lines are above the head of a table, no narrower than most lines.

    >>> _title_rows([["Review of March", ""], ["", ""], ["id", "verdict"], ["q1", "yes"]])
    2
    """
    widths = [*map(_width, rows[:MOST_TITLES])]
    usual = median_low([width for width in widths if width > 1] or [0])
    return next((n for n, width in enumerate(widths) if width >= max(usual, 2)), 0)


def _width(cells: Sequence[Any]) -> int:
    """How many cells a row has, through the last one with a value."""
    return max((n for n, cell in enumerate(cells, 1) if cell not in ("", None)), default=0)


def _read_excel(path: Path) -> tuple[Rows, Metadata]:
    """The rows of the first sheet of a workbook."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise InputError(
            f"{path} is an Excel workbook, and python-calamine, which reads it, is not installed: "
            "pip install 'tracecal[excel]', or save it as CSV."
        ) from None
    content = read_regular(path, MOST_BYTES)
    with zipfile.ZipFile(BytesIO(content)) as parts:
        _require_bounded(parts, path)
    try:
        workbook = CalamineWorkbook.from_object(BytesIO(content))
        sheet = workbook.get_sheet_by_index(0)
    except CalamineError as error:
        raise _unreadable(path, error) from error
    if len(workbook.sheet_names) > 1:
        LOGGER.info("%s: of its sheets the first is read, %r", path, sheet.name)
    return numbered(_rows_of_cells(sheet.to_python(), path)), {}


def _rows_of_cells(
    rows: Sequence[Sequence[Any]], path: Path
) -> Iterator[dict[str, Any] | WrongRow]:
    """The rows of a table by the names in its head; an error for one with more cells than that.

    Columns without a name are left out.
    """
    head, *body = rows[_title_rows(rows) :] or [[]]
    names = [str(name).strip() if name is not None else "" for name in head]
    if twice := [name for name in dict.fromkeys(names) if name and names.count(name) > 1]:
        raise InputError(
            f"{path} has several columns named {', '.join(map(repr, twice))}, of which one alone "
            "would be read; rename the others."
        )
    for row in body:
        width = _width(row)
        if width > len(names):
            yield WrongRow(f"it has {len(row)} cells, and the head names {len(names)} columns")
        elif width:
            cells = zip_longest(names, row[: len(names)])
            yield {name: _cell_value(cell) for name, cell in cells if name}


def _cell_value(cell: Any) -> Any:
    """The value of a cell; None where it is empty or missing."""
    if isinstance(cell, str) and cell[:1] in ("[", "{"):
        return parsed_text(cell)
    return None if cell == "" else cell


def _table_text(path: Path) -> str:
    """The text of a table, which may be in the encoding of an old program, with its line ends."""
    content = _content(path)
    try:
        text = _decoded(content)
    except UnicodeDecodeError:
        is_of_mac = b"\r" in content and b"\n" not in content
        encoding = "mac_roman" if is_of_mac else "cp1252"
        text = content.decode(encoding, errors="replace")
        if not set(text).isdisjoint(_CONTROLS):
            raise
        LOGGER.warning("%s is not UTF-8, and is read as %s", path, encoding)
    return text


def _content(path: Path) -> bytes:
    """The content of a file, unpacked. Raises `InputError` for one that is too large."""
    return b"".join(_pieces(path))


def _pieces(path: Path) -> Iterator[bytes]:
    """The content of a file in pieces, unpacked.

    Raises `InputError` for a packed file of more than MOST_UNPACKED and LARGEST_RATIO times its
    bytes.
    """
    with open_regular(path, MOST_BYTES) as file:
        size = os.fstat(file.fileno()).st_size
        if path.suffix not in PACKED or not size:
            # A file of the system has size 0, and may have no end.
            for begin in range(0, size, PIECE):
                yield file.read(min(PIECE, size - begin))
            return
        n_unpacked, max_bytes = 0, max(MOST_UNPACKED, LARGEST_RATIO * size)
        with pa.input_stream(file, compression=PACKED[path.suffix]) as stream:
            while piece := stream.read(PIECE):
                n_unpacked += len(piece)
                if n_unpacked > max_bytes:
                    raise InputError(
                        f"{path} would unpack to more than {max_bytes:,} bytes; unpack it first."
                    )
                yield piece


def _decoded(content: bytes) -> str:
    return content.decode(_encoding(content) or "utf-8-sig")


def _encoding(content: bytes) -> str | None:
    """The encoding that the mark at the beginning of a text says."""
    return next((name for mark, name in ENCODINGS.items() if content.startswith(mark)), None)


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """The lines of a text in UTF-8 that are not blank, each with its place.

    Only a line feed ends one: texts may hold other line separators.
    """
    number, parts = 0, list[bytes]()
    for piece in chain(_pieces(path), [b"\n"]):
        first, *rest = piece.split(b"\n")
        parts.append(first)
        for following in rest:
            number, line = number + 1, b"".join(parts)
            if line.strip():
                yield f"line {number}", line.removeprefix(BOM_UTF8) if number == 1 else line
            parts = [following]


def _read_json(path: Path) -> tuple[Rows, Metadata]:
    """Read JSON Lines one by one, or else a JSON document with a list of rows, or a stream."""
    lines = _lines(path)
    head = [*islice(lines, 2)]
    if (
        len(head) == 2
        and _encoding(head[0][1]) is None
        and not isinstance(_parse(head[0][1]), ValueError)
    ):
        return join_rows(_parsed_lines(path, chain(head, lines))), {}
    return _rows_of_text(path, _decoded(_content(path))), {}


def _parsed_lines(path: Path, lines: Iterable[tuple[str, bytes]]) -> Rows:
    """The values of lines. Raises `InputError` where the rest of the file cannot be read."""
    try:
        for location, line in lines:
            yield location, _parse(line)
    except UNREADABLE as error:
        raise _unreadable(path, error) from error


def _rows_of_text(path: Path, text: str) -> Rows:
    """The rows of a text of JSON that is no JSON Lines in UTF-8."""
    if is_event_stream(text):
        return numbered(_read_events(path, text))
    lines = [(f"line {n}", line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        return iter(())
    if len(lines) > 1 and not isinstance(_parse(lines[0][1]), ValueError):
        return join_rows((location, _parse(line)) for location, line in lines)
    documents = _documents(path, text, [line for _, line in lines])
    if documents is None:
        return ((location, _parse(line)) for location, line in lines)
    rows = [row for document in documents for row in _document_rows(path, document)]
    return join_rows(numbered(rows))


def _documents(path: Path, text: str, lines: list[str]) -> list[Any] | None:
    """The JSON values that follow one another in a text, each over several lines.

    None where the text is rather JSON Lines with invalid rows; raises `InputError` where it is
    neither.
    """
    try:
        return parsed_json_sequence(text)
    except ValueError as error:
        n_rows = sum(isinstance(_parse(line), dict) for line in lines)
        if 2 * n_rows >= len(lines) or len(lines) == 1:
            return None
        raise InputError(
            f"{path} is neither JSON Lines nor JSON ({error}); give one row a line, or one list."
        ) from error


def _document_rows(path: Path, document: Any) -> list[Any]:
    """Return the rows of a document: a list, an Inspect log, or an object with one list."""
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        return [document]
    if isinstance(document.get("samples"), list):
        return [_with_request(sample, document) for sample in document["samples"]]
    lists = {
        name: rows
        for name, rows in document.items()
        if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows)
    }
    if _is_row(document):
        return [document]
    if not lists:
        return _rows_below(path, document)
    if len(lists) > 1:
        of_answers = {name: rows for name, rows in lists.items() if _holds_answer(rows[0])}
        lists = of_answers if len(of_answers) == 1 else lists
    if len(lists) > 1:
        raise InputError(
            f"{path} holds lists under several keys ({', '.join(lists)}); give the one of the "
            "answers in a file of its own."
        )
    shared = {name: document[name] for name in SHARED if name in document}
    return [shared | row for row in next(iter(lists.values()))]


def _rows_below(path: Path, document: dict[str, Any]) -> list[Any]:
    """The one list of several answers below the keys of a document, or else the document."""
    objects, lists = [("", document)], dict[str, list[Any]]()
    for place, value in objects:
        for name, inner in value.items():
            below = f"{place}.{name}" if place else name
            if isinstance(inner, dict) and below.count(".") < MOST_KEYS:
                objects.append((below, inner))
            elif isinstance(inner, list) and len(inner) > 1 and isinstance(inner[0], dict):
                lists |= {below: inner} if _holds_answer(inner[0]) else {}
    if len(lists) != 1:
        return [document]
    ((place, rows),) = lists.items()
    LOGGER.info("%s: the rows that are read are those at %s", path, place)
    return rows


def _holds_answer(row: dict[str, Any]) -> bool:
    return _is_row(row) or bool(column_paths(row))


def _is_row(document: dict[str, Any]) -> bool:
    """Whether a document is one answer, of any format, in an envelope or not."""
    return "response" in document or "labelled" in document or FORMATS.recognises(document)


def _read_events(path: Path, text: str) -> list[Any]:
    try:
        return [with_id(row, number) for number, row in enumerate(read_events(text), 1)]
    except WrongRow as error:
        raise InputError(f"{path} is a stream that cannot be read: {error}.") from error


def _read_inspect_log(path: Path) -> tuple[Rows, Metadata]:
    """The samples of an Inspect log: a zip with a JSON file of each."""
    with open_regular(path, MOST_BYTES) as file, zipfile.ZipFile(file) as log:
        # Where a sample was written twice, the later one counts.
        files = {file.filename: file for file in log.infolist()}
        _require_bounded(log, path)
        header = _parse(_unpack(log, files[HEADER])) if HEADER in files else {}
        if not isinstance(header, dict):
            raise zipfile.BadZipFile(f"its {HEADER} is not a JSON object")
        rows = [
            (name, _with_request(_parse(_unpack(log, file)), header))
            for name, file in files.items()
            if name.startswith("samples/")
        ]
    return iter(rows), {}


def _require_bounded(packed: zipfile.ZipFile, path: Path) -> None:
    """Raise `InputError` for a small zip that holds very much."""
    unpacked = sum(file.file_size for file in packed.infolist())
    if unpacked > max(MOST_UNPACKED, LARGEST_RATIO * path.stat().st_size):
        raise InputError(
            f"{path} would unpack to {unpacked:,} bytes, far more than a file of its size holds; "
            "give it as the program wrote it."
        )


def _with_request(sample: Any, log: dict[str, Any]) -> Any:
    """A sample of an Inspect log with the generation settings that the log states."""
    plan = log.get("plan")
    request = plan.get("config") if isinstance(plan, dict) else None
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


def _parse(text: str | bytes) -> Any:
    """The value of JSON text, or the error that says why it is none."""
    try:
        content = text.encode() if isinstance(text, str) else text
        value = orjson.loads(content)
        if _is_plain(content, value):
            return value
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, UnicodeEncodeError):
        pass
    text = text.decode() if isinstance(text, bytes) else text
    try:
        return parsed_json(text)
    except ValueError as error:
        return error


def _is_plain(content: bytes, value: Any) -> bool:
    """Whether orjson's value is that of JSON: no key is repeated, and no number is long.

    orjson takes the last value of a repeated key, and makes a float of a number of 20 digits.
    """
    squeezed = content.translate(_DIGITS, b" \t\r\n")
    if _LONG in squeezed or (b"\\u00" in content and any(end in content for end in _KEY_ENDS)):
        return False
    return orjson.dumps(value).count(b'":') == squeezed.count(b'":')


def parsed_text(text: str) -> Any:
    """The value of a text of JSON; other texts are returned unchanged.

    >>> parsed_text("[1, 2]"), parsed_text("[1, 2")
    ([1, 2], '[1, 2')
    """
    value = _parse(text)
    return text if isinstance(value, ValueError) else value


def is_event_stream(text: str) -> bool:
    """Whether a text begins as server-sent events do.

    >>> is_event_stream('data: {"choices": []}')
    True
    """
    return text.lstrip("\r\n ").startswith(("data:", "event:", ":"))  # a comment begins with ':'


def read_stream(text: str) -> list[Row] | None:
    """The answers of a text of events, or of pieces as JSON; None for any other text.

    >>> piece = '{"model": "m", "created_at": "", "response": "Li", "done": false}'
    >>> read_stream(piece)[0]["response"]
    'Li'
    """
    if is_event_stream(text):
        return read_events(text)
    if not text.lstrip().startswith(("{", "[")):
        return None
    values = parsed_json_sequence(text)
    values = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    if not values or _kind_of_piece(values[0]) is None:
        return None
    joined = (value for _, value in _join(("", value) for value in values))
    return [value.answer if isinstance(value, Joined) else value for value in joined]


def read_events(text: str) -> list[Row]:
    """The answers of server-sent events. Raises `WrongRow` where one is not JSON.

    >>> text = 'data: {"choices": [{"text": "Li"}]}\\n\\ndata: {"choices": [{"text": "ma"}]}\\n\\n'
    >>> read_events(text)[0]["choices"][0]["text"]
    'Lima'
    """
    values: list[Any] = []
    for number, event in enumerate(filter(str.strip, _EVENT_END.split(text)), 1):
        lines = [line for line in _LINE_END.split(event) if line.startswith("data:")]
        data = "\n".join(line[5:].removeprefix(" ") for line in lines)
        if data.strip() == DONE:
            values.append(DONE)
        elif data:
            try:
                values.append(parsed_json(data))
            except ValueError as error:
                raise WrongRow(f"event {number} is not JSON ({error})") from error
    return _join_events(values)


def join_rows(rows: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Join the pieces of streams among the located rows of a file; other rows stay.

    >>> [*join_rows([("row 1", {"id": "a", "answer": "Lima"})])]
    [('row 1', {'id': 'a', 'answer': 'Lima'})]
    """
    number = 0
    for location, value in _join(rows):
        if isinstance(value, Joined):
            number += 1
            yield location, with_id(value.answer, number)
        else:
            yield location, value


def with_id(answer: Row, number: int) -> Row:
    """A streamed answer with an id: its number, where the server gave it none.

    >>> with_id({"response": "Lima"}, 2)
    {'response': 'Lima', 'id': 'stream-2'}
    """
    return answer if any(map(answer.get, IDS)) else answer | {"id": f"stream-{number}"}


def _join(rows: Iterable[tuple[str, Any]], are_events: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield located rows: whole ones as they are, and a `Joined` for the pieces of an answer."""
    current: Joined | None = None
    begin = ""
    for location, value in rows:
        if current is not None and current.continues(value):
            current.add(value)
            continue
        if current is not None:
            yield begin, current
        kind = _kind_of_piece(value, are_events)
        current, begin = (None if kind is None else Joined(kind)), location
        if current is None:
            yield location, value
        else:
            current.add(value)
    if current is not None:
        yield begin, current


def _kind_of_piece(value: Any, is_event: bool = False) -> Stream | None:
    """The kind of stream that a JSON value, or an event, is a piece of; None for whole answers."""
    if not isinstance(value, dict):
        return None
    kinds = (stream for stream in STREAMS if stream.recognises(value))
    return next((kind for kind in kinds if is_event or kind.is_piece(value)), None)


def _join_events(values: Iterable[Any]) -> list[Row]:
    """Join the events of streams that follow one another.

    Raises `WrongRow` where there is no answer among them; says how many events are no pieces.
    """
    events = [*values]
    if not all(isinstance(event, dict) or event == DONE for event in events):
        raise WrongRow("an event is no JSON object")
    pieces = [
        ("", each)
        for each in events
        if each == DONE or _kind_of_piece(each, True) or stated_error(each)
    ]
    joined = [value for _, value in _join(pieces, are_events=True) if value != DONE]
    streams = [value.answer for value in joined if isinstance(value, Joined)]
    n_others = len(events) - len(pieces) + len(joined) - len(streams)
    if not streams:  # but an error, or a prompt that was blocked
        responses = (event for event in events if event != DONE)
        streams = [each for each in responses if stated_error(each) or FORMATS.recognises(each)]
        n_others -= len(streams)
    if not streams:
        raise WrongRow("its events hold no answer: neither choices nor a completed response")
    if n_others:
        LOGGER.warning("left out %d events of streams, which are no pieces of answers", n_others)
    return streams
