"""Reading and writing files so that they appear whole or not at all."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from tracecal.errors import require_columns, unreadable
from tracecal.seal import BLANK, is_broken, seal


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Yield a path beside `path` to write to; rename it onto `path` once it is complete.

    After an error (a full disk, say) nothing is left at either path, and what stood at `path`
    before is untouched. The name beside is fixed, so a killed job's leftover is overwritten
    by the next attempt.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        with part.open("rb") as handle:
            os.fsync(handle.fileno())
        part.replace(path)
        _sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut: the name is the folder's, not the file's."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_parquet(frame: pl.DataFrame, path: str | Path) -> None:
    """Write `frame` as sealed Parquet, whole or not at all."""
    with written_whole(path) as part:
        frame.write_parquet(part, metadata=BLANK)
        seal(part)


def write_bytes(content: bytes, path: str | Path) -> None:
    """Write `content`, whole or not at all."""
    with written_whole(path) as part:
        part.write_bytes(content)


def write_text(text: str, path: str | Path) -> None:
    """Write `text` as UTF-8 with unchanged line ends, whole or not at all."""
    write_bytes(text.encode(), path)


def write_json(value: Any, path: str | Path) -> None:
    """Write `value` as indented JSON (NaN is refused), whole or not at all."""
    write_text(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n", path)


def read_json(path: str | Path) -> Any:
    """Read JSON; raise `InputError` naming the file where it is cut short or foreign."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def read_parquet(path: str | Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read a Parquet file; raise `InputError` where it is unreadable or lacks one of `columns`."""
    try:
        frame = pl.read_parquet(read_sealed(path))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise unreadable(path, error) from error
    require_columns(frame.columns, columns or [], path)
    return frame


def read_sealed(path: str | Path) -> bytes:
    """A file's bytes; raise `InputError` where they do not match the file's seal."""
    content = Path(path).read_bytes()
    if is_broken(content):
        raise unreadable(path, ValueError("its bytes do not match its own checksum"))
    return content


def sha256(path: str | Path) -> str:
    """Hexadecimal SHA-256 of a file's bytes."""
    with Path(path).open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
