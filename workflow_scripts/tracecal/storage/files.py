"""Atomic writes, and reading with checks: files appear whole or not at all."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracecal.errors import InputError, require_columns, unreadable
from tracecal.storage.checksum import blank, require_own, require_sum, seal, write_sum

if TYPE_CHECKING:  # slow to load, and not needed where the workflow starts
    import polars as pl


@contextmanager
def _named(path: str | Path) -> Iterator[None]:
    """Name `path` in an error of writing it that names no file.

    A library's own error is raised as an `InputError`.
    """
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    except Exception as error:
        library = type(error).__module__.partition(".")[0]
        if library in ("polars", "pyarrow") or "(os error" in str(error):  # as Rust's libraries say
            raise InputError(f"{path} cannot be written: {str(error).strip()}.") from error
        raise


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield a path beside `path` to write to; rename it onto `path` once it is complete.

    After an error (a full disk, say) nothing is left at either path, and what stood at `path`
    before is untouched. The name beside is fixed, so a killed job's leftover is overwritten
    by the next attempt.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        with _named(path):
            yield part
            with part.open("rb") as handle:
                os.fsync(handle.fileno())
            part.replace(path)
            _sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield an empty folder beside `path` to fill; rename it to `path` once it is complete.

    Its checksum goes beside it. After an error what stood at `path` before is untouched. A killed
    job's leftover is removed by the next attempt.
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        with _named(path):
            yield part
            for file in part.iterdir():
                if file.is_file() and not file.is_symlink():
                    # Only the owner may read what safetensors writes; give it the folder's rights.
                    file.chmod(part.stat().st_mode & 0o666)
            shutil.rmtree(path, ignore_errors=True)
            part.replace(path)
            write_sum(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut: the name is the folder's, not the file's."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_parquet(frame: "pl.DataFrame", path: str | Path) -> None:
    """Write `frame` atomically as Parquet with its checksum in the metadata."""
    with atomic_write(path) as part:
        frame.write_parquet(part, metadata=blank(path))
        seal(part)


def write_bytes(content: bytes, path: str | Path) -> None:
    """Write `content` atomically."""
    with atomic_write(path) as part:
        part.write_bytes(content)


def write_text(text: str, path: str | Path) -> None:
    """Write `text` atomically as UTF-8 with unchanged line ends."""
    write_bytes(text.encode(), path)


def write_checked(text: str, path: str | Path) -> None:
    """Write `text` as UTF-8 with its checksum beside it, for `read_checked`."""
    write_text(text, path)
    with _named(path):
        write_sum(path)


def read_checked(path: str | Path) -> str:
    """A text file; raise `InputError` where it does not match the checksum beside it."""
    require_sum(path)
    try:
        return Path(path).read_bytes().decode()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def write_json(value: Any, path: str | Path) -> None:
    """Write `value` atomically as indented JSON (NaN is refused), with its checksum."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    write_checked(f"{text}\n", path)


def read_json(path: str | Path) -> Any:
    """Read JSON; raise `InputError` naming the file where it is damaged or not its own."""
    text = read_checked(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise unreadable(path, error) from error


def read_parquet(path: str | Path, columns: Sequence[str] | None = None) -> "pl.DataFrame":
    """Read a Parquet file; raise `InputError` where it is unreadable or lacks one of `columns`."""
    import polars as pl

    try:
        frame = pl.read_parquet(read_sealed(path))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise unreadable(path, error) from error
    require_columns(frame.columns, columns or [], path)
    return frame


def read_sealed(path: str | Path) -> bytes:
    """A file's bytes; raise `InputError` where they do not match its checksum and path."""
    content = Path(path).read_bytes()
    require_own(content, path)
    return content


def map_sealed(path: str | Path) -> mmap:
    """The bytes of `read_sealed`, mapped: only what is used of them is held in memory."""
    with Path(path).open("rb") as handle:
        try:
            content = mmap(handle.fileno(), 0, access=ACCESS_READ)
        except ValueError as error:  # an empty file
            raise unreadable(path, error) from error
    require_own(content, path)
    return content
