"""Files, written atomically (whole or not at all) and read with a check of their checksums."""

import errno
import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracecal.errors import InputError, require_columns, unreadable
from tracecal.io.checksums import checksum_path, require_sum, write_sum
from tracecal.io.regular_files import open_own, read_regular, require_readable
from tracecal.io.seals import SEALED, blank, made_with, require_own, seal

if TYPE_CHECKING:  # slow to load, and not needed at import
    import polars as pl


# Environment variable with the file in which `verify` lists unsound results.
DOUBTED = "TRACECAL_DOUBTED"
WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # file systems that have none
MOST_RESULT, MOST_TEXT = 2**40, 2**30  # bytes of a result, and of one that is text


@contextmanager
def _named(path: Path, part: Path | None = None) -> Iterator[None]:
    """Name `path` in a write error that names no file or the temporary file `part`.

    An error of a library becomes an `InputError`.
    """
    try:
        yield
    except Exception as error:
        library = type(error).__module__.partition(".")[0]
        if isinstance(error, OSError) and error.errno is not None:
            if error.filename in (None, str(part)):
                error.filename = str(path)
        elif library in ("polars", "pyarrow") or "(os error" in str(error):  # as Rust words them
            raise InputError(f"{path} cannot be written: {str(error).strip()}.") from error
        raise


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, and rename it to `path` once it is written.

    A link stays: the file that it points to is written, and keeps its mode. After an error, such
    as a full disk, the temporary file is gone and `path` unchanged. The temporary name is fixed, so
    that the next attempt overwrites what a killed job left. Raises `InputError` while another
    process writes the same file.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is a folder or a device: name a file to write.")
    with suppress(FileNotFoundError), _named(path):
        path.stat()  # a link to itself is an error of the system
    path.parent.mkdir(parents=True, exist_ok=True)
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    part = path.with_name(f".{path.name}.part")
    with _named(path, part), _locked(path, part):
        try:
            yield part
            if path.exists() and (mode := path.stat().st_mode) != part.stat().st_mode:
                part.chmod(stat.S_IMODE(mode))
            with part.open("rb") as handle:
                os.fsync(handle.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


@contextmanager
def _locked(path: Path, part: Path) -> Iterator[None]:
    """Make `part` and hold a lock on it, which a kill releases; without locks there is none.

    Raises `InputError` where another process holds it.
    """
    while True:
        with open(part, "ab", opener=open_own) as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"{path} is being written by another process: wait for its end, or name "
                    "another file."
                ) from None
            except OSError as error:
                if error.errno not in WITHOUT_LOCKS:
                    raise
            # Another process may have renamed the file between its opening and its lock.
            if _is_at(handle.fileno(), part):
                yield
                return


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder as `atomic_write` does a file, and write its checksum beside it."""
    path = Path(path)
    part = path.with_name(f".{path.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        with _named(path, part):
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


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut: the folder stores the names."""
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
    """Write `text` atomically as UTF-8, line endings unchanged."""
    write_bytes(text.encode(), path)


def write_checked(text: str, path: str | Path) -> None:
    """Write `text` as UTF-8 with its checksum beside it, for `read_checked`."""
    write_text(text, path)
    with _named(Path(path)):
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
