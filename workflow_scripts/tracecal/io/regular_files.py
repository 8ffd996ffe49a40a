"""Regular files: read up to a size, and written atomically (whole or not at all).

A pipe, a device or a hole would be read for ever.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tracecal.errors import InputError, here

WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # file systems that have none
MOST_HOLES, LARGEST_HOLE_RATIO = 2**28, 100  # bytes; of larger files, those to a written one


def require_regular(path: str | Path, max_bytes: int) -> None:
    """Raise `InputError` unless `path` is a file (no device or pipe) of at most `max_bytes`."""
    try:
        status = Path(path).stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read{here(path)}: {error.strerror}.") from error
    except ValueError as error:  # a path with a NUL
        raise InputError(f"{str(path)!r} is not a path.") from error
    require_readable(path, status, max_bytes)


def require_readable(path: str | Path, status: os.stat_result, max_bytes: int) -> None:
    """Raise `InputError` unless a file with this status can be read as a whole."""
    size = status.st_size
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is not a file; give one (no folder, pipe or device).")
    if size > max_bytes:
        raise InputError(f"{path} holds {size:,} bytes; at most {max_bytes:,} are allowed.")
    written = 512 * status.st_blocks  # as POSIX counts them
    if size > MOST_HOLES and size > LARGEST_HOLE_RATIO * written:
        raise InputError(
            f"{path} holds {size:,} bytes, {written:,} of them written: give it whole."
        )


def read_regular(path: str | Path, max_bytes: int) -> bytes:
    """The bytes of a file.

    Raises `OSError` where there is none, and `InputError` where it is no file or too large.
    """
    with open_regular(path, max_bytes) as file:
        # A file of the system, as in /proc, has size 0, and some of them have no end.
        return file.read(os.fstat(file.fileno()).st_size)


@contextmanager
def open_regular(path: str | Path, max_bytes: int) -> Iterator[BinaryIO]:
    """Open a file whose reads never wait; raises as `read_regular`."""
    require_readable(path, Path(path).stat(), max_bytes)
    # The name may have become another file's: of a pipe, this does not wait for the other end.
    with open(path, "rb", opener=open_without_waiting) as file:
        require_readable(path, os.fstat(file.fileno()), max_bytes)
        yield file


def open_own(path: str, flags: int) -> int:
    """An opener for `open` that makes a file or opens one with this name alone.

    Raises `InputError` for a link, a pipe, or a second name of another file.
    """
    with suppress(FileNotFoundError):
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise InputError(
                f"{path} is a link, a pipe, a folder or a second name of another file, and would "
                "hold what is being written: remove it."
            )
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def open_without_waiting(path: str, flags: int) -> int:
    """An opener for `open`: neither it nor a read waits, as for a pipe's other end."""
    return os.open(path, flags | os.O_NONBLOCK)


@contextmanager
def errors_naming(path: Path, part: Path | None = None) -> Iterator[None]:
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
    with suppress(FileNotFoundError), errors_naming(path):
        path.stat()  # a link to itself is an error of the system
    path.parent.mkdir(parents=True, exist_ok=True)
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    part = path.with_name(f".{path.name}.part")
    with errors_naming(path, part), _locked(path, part):
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


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut: the folder stores the names."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_bytes(content: bytes, path: str | Path) -> None:
    """Write `content` atomically."""
    with atomic_write(path) as part:
        part.write_bytes(content)


def write_text(text: str, path: str | Path) -> None:
    """Write `text` atomically as UTF-8, line endings unchanged, half a surrogate pair escaped."""
    write_bytes(text.encode(errors="backslashreplace"), path)
