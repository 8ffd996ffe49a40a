"""SHA-256 digests of files, folders and texts, remembered in a cache while a file is unchanged."""

import hashlib
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from os.path import realpath
from pathlib import Path
from uuid import uuid4

from tracecal.errors import InputError
from tracecal.io.regular_files import open_without_waiting

# The folder in which the processes of a run share digests; empty: each computes its own.
REMEMBERED: ContextVar[str] = ContextVar("remembered", default="")
State = tuple[int, ...]  # a file's device, inode, size in bytes, mtime and ctime in nanoseconds
PIECE = 2**20  # bytes that are read at once
SETTLED = 2 * 10**9  # nanoseconds after which a clock tick cannot hide another change


def digest(path: str | Path) -> str:
    """Hexadecimal SHA-256 of a file, or of the names and bytes of the files of a folder."""
    path = Path(path)
    if not path.is_dir():
        return _file_digest(path)
    files = sorted(contents(path).items())
    lines = [f"{_file_digest(file)}  {name}\n" for name, file in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def contents(folder: Path) -> dict[str, Path]:
    """The files of a folder and its subfolders by relative path; hidden ones are left out."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in _visible(folder.iterdir())
        if path.is_file()
    }


def _visible(paths: Iterable[Path]) -> Iterable[Path]:
    for path in paths:
        if not path.name.startswith("."):
            yield path
            if path.is_dir() and not path.is_symlink():
                yield from _visible(path.iterdir())


def state_of(folder: str | Path) -> dict[str, State]:
    """The state of every file of a folder, to notice a change."""
    return {name: _state(path) for name, path in contents(Path(folder)).items()}


def remembered(key: str, compute: Callable[[], str]) -> str:
    """The digest of what `key` describes: from the cache, else computed."""
    entry = _entry(key)
    if entry and (cached := _read(entry, ())):
        return cached
    computed = compute()
    if entry:
        _write(entry, (), computed)
    return computed


def _entry(key: str) -> Path | None:
    """The file of the cache that holds the digest of `key`; None without a cache."""
    cache = REMEMBERED.get()
    return Path(cache) / hashlib.sha256(key.encode()).hexdigest() if cache else None


def _file_digest(path: Path) -> str:
    path = Path(realpath(path))  # of a link to itself too
    if not path.is_file():
        path.stat()  # says that there is nothing
        raise InputError(f"{path} is not a file; give one (no pipe or device).")
    state, entry = _state(path), _entry(str(path))
    if entry and (cached := _read(entry, state)):
        return cached
    sha256 = hashlib.sha256()
    with open(path, "rb", opener=open_without_waiting) as handle:
        while piece := handle.read(PIECE):
            sha256.update(piece)
    computed = sha256.hexdigest()
    if entry and state == _state(path) and time.time_ns() - max(state[3:]) > SETTLED:
        _write(entry, state, computed)
    return computed


def _state(path: Path) -> State:
    stat = path.stat()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _read(entry: Path, state: State) -> str | None:
    """The digest cached for a file in this state; None where there is none or it is damaged."""
    try:
        line, check = entry.read_text(encoding="ascii").rsplit(maxsplit=1)
        *stored, cached = line.split(" ")
    except (OSError, ValueError):
        return None
    return cached if stored == [*map(str, state)] and check == hash_of(line) else None


def _write(entry: Path, state: State, computed: str) -> None:
    line = " ".join([*map(str, state), computed])
    temporary = entry.with_name(f"{entry.name}.{uuid4().hex}")
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(f"{line} {hash_of(line)}\n", encoding="ascii")
        temporary.replace(entry)
    except OSError:  # a cache that cannot be written costs time only
        with suppress(OSError):
            temporary.unlink()


def hash_of(text: str) -> str:
    """The first 16 hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def text_hash(path: Path) -> str:
    """Hash of a text file that is not code, such as a template."""
    return hash_of(path.read_text(encoding="utf-8"))
