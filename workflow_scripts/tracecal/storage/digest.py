"""SHA-256 digests of files and folders, which depend on their bytes and not on their times.

A digest is cached with the file's size and times, in the folder that the environment variable
TRACECAL_DIGESTS names, so that large weights are read again only where these changed. The
time of a file's last change of any kind (ctime) is among them, which no copy can keep.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

REMEMBERED = "TRACECAL_DIGESTS"
State = tuple[int, ...]  # of a file: its size and its times in nanoseconds
SETTLED = 2 * 10**9  # nanoseconds after which a clock tick cannot hide another change


def digest(path: str | Path) -> str:
    """Hexadecimal SHA-256 of a file's bytes, or over the names and bytes of a folder's files."""
    path = Path(path)
    return digest_of(contents(path)) if path.is_dir() else _file_digest(path)


def digest_of(files: Mapping[str, Path]) -> str:
    """Hexadecimal SHA-256 over named files: their names and their bytes."""
    whole = hashlib.sha256()
    for name, path in sorted(files.items()):
        whole.update(f"{_file_digest(path)}  {name}\n".encode())
    return whole.hexdigest()


def contents(folder: Path) -> dict[str, Path]:
    """The files of a folder and of those below it, by relative path; hidden ones left out."""
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
    """The state of every file of a folder, which each change of one changes."""
    return {name: _state(path) for name, path in contents(Path(folder)).items()}


def remembered(key: str, compute: Callable[[], str]) -> str:
    """A digest that depends on the text `key` alone: from the cache, else computed."""
    note = _note(key)
    found = (note and _recall(note, ())) or compute()
    if note:
        _remember(note, (), found)
    return found


def _note(key: str) -> Path | None:
    memory = os.environ.get(REMEMBERED)
    return Path(memory) / hashlib.sha256(key.encode()).hexdigest() if memory else None


def _file_digest(path: Path) -> str:
    path = path.resolve()
    state, note = _state(path), _note(str(path))
    if note and (cached := _recall(note, state)):
        return cached
    with path.open("rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
    if note and state == _state(path) and time.time_ns() - max(state[1:]) > SETTLED:
        _remember(note, state, found)
    return found


def _state(path: Path) -> State:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _recall(note: Path, state: State) -> str | None:
    """The digest that is cached for a file in this state; null where the entry is damaged."""
    try:
        *noted, found, check = note.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return None
    line = _line(state, found)
    return found if " ".join(noted) == _line(state) and check == _check(line) else None


def _remember(note: Path, state: State, found: str) -> None:
    line = _line(state, found)
    temporary = note.with_name(f"{note.name}.{uuid4().hex}")
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(f"{line} {_check(line)}\n", encoding="ascii")
        temporary.replace(note)
    except OSError:  # a cache that cannot be written costs time only
        with suppress(OSError):
            temporary.unlink()


def _line(state: State, *found: str) -> str:
    return " ".join([*map(str, state), *found])


def _check(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()[:16]
