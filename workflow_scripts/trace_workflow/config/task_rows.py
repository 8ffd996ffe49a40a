"""Raw rows of a task from local files, and their fields as the task's columns."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from trace_workflow.config.tasks import Fields
from tracecal.errors import InputError, listed
from tracecal.io.checksums import require_sum
from tracecal.io.input_files import MOST_BYTES, parsed_json, require_regular

Row = dict[str, Any]
MOST_ROWS = 5_000_000
REPEATED = "_duplicated_0"
# The first bytes of gzip, zstd and zlib
COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x9c", b"\x78\xda")


def read_rows(path: str | Path) -> list[Row]:
    """The rows of a .parquet, .jsonl, .json or .csv file, in order.

    Raises `InputError` where the file is missing, empty, broken or of another type.
    """
    path = Path(path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"{path} has an unknown type {path.suffix!r}; expected one of {', '.join(READERS)}."
        )
    if not path.exists():
        raise InputError(
            f"{path} does not exist in {Path.cwd()}; place the data file there or correct the path."
        )
    require_regular(path, MOST_BYTES)
    require_sum(path, given=True)
    try:
        rows = reader(path)
    except (OSError, ValueError, pa.ArrowException, pl.exceptions.PolarsError) as error:
        if isinstance(error, InputError):
            raise
        reason = (str(error).strip() or type(error).__name__).split("\n")[0]
        raise InputError(f"{path} cannot be read as {path.suffix}: {reason}.") from error
    if not rows:
        raise InputError(f"{path} holds no rows.")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise InputError(
                f"{path}: row {number} is not an object of named fields but "
                f"{json.dumps(row, default=str)[:60]}."
            )
    return rows


def _json_lines(path: Path) -> list[Any]:
    # Only "\n" ends a row: texts may hold U+2028 and others that `splitlines` breaks at.
    rows = []
    for number, line in enumerate(path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            try:
                rows.append(parsed_json(line))
            except ValueError as error:
                raise InputError(f"{path}: line {number} is not JSON ({error}).") from error
    return rows


def _json(path: Path) -> list[Any]:
    value = parsed_json(path.read_bytes().decode("utf-8-sig"))
    if not isinstance(value, list):
        raise InputError(f"{path} must hold a list of objects, one per row.")
    return value


def _csv(path: Path) -> list[Any]:
    # Everything stays text: an id such as 007 or an answer such as 51.0 must not be rewritten.
    if not path.stat().st_size:
        return []
    # Polars would unpack it silently, whatever its size.
    with path.open("rb") as file:
        if file.read(4).startswith(COMPRESSED):
            raise InputError(f"{path} is compressed; unpack it first.")
    frame = pl.read_csv(path, infer_schema=False)
    # Polars appends REPEATED to the second of two equal names; unnamed columns do no harm.
    again = [name.removesuffix(REPEATED) for name in frame.columns if name.endswith(REPEATED)]
    if repeated := [name for name in again if name and name in frame.columns]:
        raise InputError(f"{path} has two columns {repeated[0]!r}; rename one of them.")
    return frame.to_dicts()


def _parquet(path: Path) -> list[Any]:
    if not path.stat().st_size:
        return []
    # The footer is checked before anything is unpacked: a few kilobytes can hold billions of rows.
    declared = pq.read_metadata(path)
    unpacked = sum(declared.row_group(g).total_byte_size for g in range(declared.num_row_groups))
    if declared.num_rows > MOST_ROWS or unpacked > MOST_BYTES:
        raise InputError(
            f"{path} declares {declared.num_rows:,} rows of {unpacked:,} bytes; a task may have "
            f"{MOST_ROWS:,} rows of {MOST_BYTES:,} bytes. Give a file of the examples you need."
        )
    return pl.read_parquet(path, glob=False, hive_partitioning=False).to_dicts()


READERS: dict[str, Callable[[Path], list[Any]]] = {
    ".parquet": _parquet,
    ".jsonl": _json_lines,
    ".json": _json,
    ".csv": _csv,
}

# Raw rows -> the columns of a task, mapped by a task file's `fields`.


def map_rows(
    rows: Sequence[Row], fields: Fields, language: str, separate: bool, where: str
) -> list[Row]:
    """Task rows without their role; a row may still lack a question or references.

    `language` is that of rows without one. Where rows of several languages share ids (`separate`,
    or a language field), the language is appended to the id, and the plain id is the group of the
    translations unless a field sets the group.
    Raises `InputError` for a field that no row has, with `where` and the rows' fields.
    """
    _require_fields(rows, fields, where)
    separate = separate or fields.language is not None
    mapped = []
    for number, row in enumerate(rows, 1):
        try:
            mapped.append(_map_row(row, fields, language, separate))
        except InputError as error:
            raise InputError(f"{where}: row {number}: {error}") from error
    return mapped


def content_hash(question: str, context: str | None) -> str:
    """16 hexadecimal digits that identify a question and its context."""
    return hashlib.sha256(f"{question}\x1f{context or ''}".encode()).hexdigest()[:16]


def values(row: Row, field: str) -> list[str]:
    """The texts at a dotted path: a list's elements, or the one scalar; blanks left out.

    A path through a list of objects collects from each of them. A text that is a JSON list or
    object is parsed where the path continues or a list is expected, so CSV can nest.
    """
    return [text for value in _at(row, field) for text in _texts(value)]


def _map_row(row: Row, fields: Fields, language: str, separate: bool) -> Row:
    def single(field: str | None) -> str | None:
        texts = _scalars(row, field) if field else []
        return texts[0] if texts else None

    question, context = single(fields.question) or "", single(fields.context)
    language = (single(fields.language) or language).lower()
    plain_id = content_hash(question, context) if fields.id is None else single(fields.id)
    if plain_id is None:
        raise InputError(f"the id field {fields.id!r} is empty.")
    names = _as_list(fields.references)
    return {
        "example_id": f"{plain_id}-{language}" if separate else plain_id,
        "group_id": single(fields.group) or plain_id,
        "language": language,
        "question": question,
        "context": context,
        "references": _distinct(text for name in names for text in values(row, name)),
        "distractors": _distinct(values(row, fields.distractors) if fields.distractors else ()),
    }


def _scalars(row: Row, field: str) -> list[str]:
    scalars = [value for value in _at(row, field) if value is not None]
    if len(scalars) > 1 or any(isinstance(value, list | dict) for value in scalars):
        raise InputError(
            f"field {field!r} must hold one text or number, not "
            f"{json.dumps(scalars, default=str)[:80]}."
        )
    return [text for value in scalars for text in _texts(value, nested=False)]


def _at(value: Any, path: str) -> Iterator[Any]:
    """The values at `path`; none where it does not exist."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value = _decoded(value)
    if isinstance(value, list):
        for item in value:
            yield from _at(item, path)
    elif isinstance(value, dict):
        # A field's name may contain a dot, as in flattened tables.
        head, _, rest = (path, "", "") if path in value else path.partition(".")
        if head in value:
            if rest:
                yield from _at(value[head], rest)
            else:
                yield value[head]


def _texts(value: Any, nested: bool = True) -> Iterator[str]:
    if nested and isinstance(value, str) and value.strip()[:1] + value.strip()[-1:] == "[]":
        value = _decoded(value)
        if isinstance(value, str) and re.match(r"\s*\[\s*['\"]", value):
            raise InputError(f"a list inside a text must be written as JSON, not {value[:60]}.")
    if isinstance(value, list):
        for item in value:
            yield from _texts(item, nested=False)
    elif isinstance(value, bool | dict):
        yield json.dumps(value, ensure_ascii=False, default=str)
    elif isinstance(value, float) and math.isnan(value):
        return
    elif value is not None and (text := _text(value).strip()):
        yield text


def _text(value: Any) -> str:
    """A value as text; raises `InputError` where its bytes or characters are not valid text."""
    try:
        text = value.decode() if isinstance(value, bytes) else str(value)
        text.encode()
    except UnicodeError as error:
        raise InputError(
            f"{str(value)[:40]!a} is not text ({error.reason}); write the file's texts as UTF-8."
        ) from error
    return text


def _decoded(text: str) -> Any:
    """The JSON value that `text` spells, or `text` itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _as_list(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else names


def _require_fields(rows: Sequence[Row], fields: Fields, where: str) -> None:
    for key, names in fields.model_dump(exclude_none=True).items():
        for field in _as_list(names):
            if not any(True for row in rows for _ in _at(row, field)):
                raise InputError(
                    f"{where} has no field {field!r} (fields.{key}); its fields are "
                    f"{present_fields(rows)}."
                )


def present_fields(rows: Iterable[Row]) -> str:
    """The dotted paths of the fields of the first rows, as a list in a sentence."""
    return listed(_distinct(leaf for row in islice(rows, 1000) for leaf in _leaves(row)))


def _leaves(value: Any, prefix: str = "") -> Iterator[str]:
    """The dotted paths of a row's fields."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict) and item:
            for key, inner in item.items():
                yield from _leaves(inner, f"{prefix}.{key}" if prefix else str(key))
        else:
            yield prefix
    if value == []:
        yield prefix
