"""Regular files of bounded size: a pipe, a device or a hole would be read for ever."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tracecal.errors import InputError, here

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
