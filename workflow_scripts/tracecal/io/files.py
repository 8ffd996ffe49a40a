"""Files with checksums, written whole or not at all, and checked where they are read."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracecal.errors import InputError, require_columns, unreadable
from tracecal.io.checksums import checksum_path, require_sum, write_sum
from tracecal.io.regular_files import (
    atomic_write,
    errors_naming,
    read_regular,
    require_readable,
    write_text,
)
from tracecal.io.seals import SEALED, blank, made_with, require_own, seal

if TYPE_CHECKING:  # slow to load, and not needed at import
    import polars as pl


# Environment variable with the file in which `verify` lists unsound results.
DOUBTED = "TRACECAL_DOUBTED"
MOST_RESULT, MOST_TEXT = 2**40, 2**30  # bytes of a result, and of one that is text


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder as `atomic_write` does a file, and write its checksum beside it."""
    path = Path(path)
    part = path.with_name(f".{path.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        with errors_naming(path, part):
            yield part
            for file in part.iterdir():
                if file.is_file() and not file.is_symlink():
                    # Only the owner may read what safetensors writes: use the folder's permissions.
                    file.chmod(part.stat().st_mode & 0o666)
            shutil.rmtree(path, ignore_errors=True)
            part.replace(path)
            write_sum(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def write_parquet(frame: "pl.DataFrame", path: str | Path) -> None:
    """Write `frame` atomically as Parquet with its checksum in the metadata."""
    with atomic_write(path) as part:
        frame.write_parquet(part, metadata=blank(path))
        seal(part)


def write_checked(text: str, path: str | Path) -> None:
    """Write `text` as UTF-8 with its checksum beside it, for `read_checked`."""
    write_text(text, path)
    with errors_naming(Path(path)):
        write_sum(path)
        if Path(path).is_symlink():  # the file is read by its own name, too
            write_sum(os.path.realpath(path))


def read_checked(path: str | Path) -> str:
    """Read a text file; raise `InputError` where it does not match the checksum beside it."""
    require_sum(path)
    try:
        return read_regular(path, MOST_TEXT).decode()
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def write_json(value: Any, path: str | Path) -> None:
    """Write `value` atomically as indented JSON with its checksum; `ValueError` for NaN."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    write_checked(f"{text}\n", path)


def read_json(path: str | Path) -> Any:
    """Read JSON; raise `InputError` naming the file where it is damaged or another's."""
    text = read_checked(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise unreadable(path, error) from error


def read_parquet(
    path: str | Path, columns: Sequence[str] | None = None, needed: Sequence[str] = ()
) -> "pl.DataFrame":
    """Read `columns` (all where None) of a Parquet file.

    Raises `InputError` where it is unreadable or lacks one of these or of the `needed` columns.
    """
    import polars as pl

    try:
        frame = pl.read_parquet(read_sealed(path))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise unreadable(path, error) from error
    require_columns(frame.columns, [*(columns or ()), *needed], path)
    return frame if columns is None else frame.select(columns)


def read_sealed(path: str | Path) -> bytes:
    """Read the bytes of a file; raise `InputError` unless they match its checksum and path."""
    content = read_regular(path, MOST_RESULT)
    require_own(content, path)
    return content


def map_sealed(path: str | Path) -> mmap:
    """Map a file into memory, with the checks of `read_sealed`."""
    require_readable(path, Path(path).stat(), MOST_RESULT)
    with Path(path).open("rb") as handle:
        try:
            content = mmap(handle.fileno(), 0, access=ACCESS_READ)
        except ValueError as error:  # an empty file
            raise unreadable(path, error) from error
    require_own(content, path)
    return content


def verify(paths: Iterable[str], maker: str) -> str:
    """Return `maker`, the hash of the settings and code that should have made the results.

    Where the environment variable TRACECAL_DOUBTED names a file, the paths of unsound results are
    added to it, one a line.
    """
    if doubted := os.environ.get(DOUBTED):
        with Path(doubted).open("a", encoding="utf-8") as listed:
            listed.writelines(f"{path}\n" for path in paths if not is_sound(path, maker))
    return maker


def is_sound(path: str | Path, maker: str) -> bool:
    """Whether a result is complete, in its place, and not made by another `maker`."""
    path = Path(path)
    try:
        path.stat()
        if path.suffix in SEALED:
            map_sealed(path).close()
        elif checksum_path(path).exists():  # what nothing reads, such as a figure, has no checksum
            require_sum(path)
    except (InputError, OSError):
        return False
    return made_with(path) in ("", maker)
