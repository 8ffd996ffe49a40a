"""Raw rows of a task from local files, and their fields as the task's columns."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tracecal.errors import InputError
from tracecal.io.checksums import require_sum
from tracecal.io.input_files import MOST_BYTES, parsed_json, require_regular
from tracecal.io.parquet_files import require_bounded

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
    require_sum(path, foreign=True)
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
    require_bounded(path.read_bytes(), path)
    return pl.read_parquet(path, glob=False, hive_partitioning=False).to_dicts()


READERS: dict[str, Callable[[Path], list[Any]]] = {
    ".parquet": _parquet,
    ".jsonl": _json_lines,
    ".json": _json,
    ".csv": _csv,
}
