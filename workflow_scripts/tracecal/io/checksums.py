"""SHA-256 digests of files, folders and texts, and checksums that results carry."""

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from mmap import ACCESS_READ, mmap
from pathlib import Path
from uuid import uuid4

from tracecal.errors import InputError, regenerate, unreadable

REMEMBERED = "TRACECAL_DIGESTS"
State = tuple[int, ...]  # a file's device, inode, size in bytes, mtime and ctime in nanoseconds
SETTLED = 2 * 10**9  # nanoseconds after which a clock tick cannot hide another change


def digest(path: str | Path) -> str:
    """Hexadecimal SHA-256 of a file's bytes, or of the names and bytes of a folder's files."""
    path = Path(path)
    return digest_of(contents(path)) if path.is_dir() else _file_digest(path)


def digest_of(files: Mapping[str, Path]) -> str:
    """Hexadecimal SHA-256 of the names and bytes of files."""
    lines = [f"{_file_digest(path)}  {name}\n" for name, path in sorted(files.items())]
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
    """The state of every file of a folder, to notice a change of any of them."""
    return {name: _state(path) for name, path in contents(Path(folder)).items()}


def remembered(key: str, compute: Callable[[], str]) -> str:
    """A digest that depends on the text `key` alone: from the cache, else computed."""
    entry = _entry(key)
    if entry and (cached := _read(entry, ())):
        return cached
    computed = compute()
    if entry:
        _write(entry, (), computed)
    return computed


def _entry(key: str) -> Path | None:
    """The file of the cache that holds the digest of `key`; None without a cache."""
    cache = os.environ.get(REMEMBERED)
    return Path(cache) / hashlib.sha256(key.encode()).hexdigest() if cache else None


def _file_digest(path: Path) -> str:
    path = path.resolve()
    state, entry = _state(path), _entry(str(path))
    if entry and (cached := _read(entry, state)):
        return cached
    with path.open("rb") as handle:
        computed = hashlib.file_digest(handle, "sha256").hexdigest()
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


# A file's checksum and owner, in its own metadata or in a small file beside it.


KEY = "tracecal.seal"
SEALED = (".arrow", ".parquet")
_MARK = b"seal-sha256:"
_BLANK = _MARK + b"0" * 64
_OWNER = re.compile(rb" of (.+?)(?: made with ([0-9a-f]{16}))?\n")


def blank(path: str | Path) -> dict[str, str]:
    """Key-value metadata for the file at `path`: a blank checksum, its place, what made it."""
    made = f" made with {MADE_WITH.get()}" if MADE_WITH.get() else ""
    return {KEY: f"{_BLANK.decode()} of {place(path)}{made}\n"}


def place(path: str | Path) -> str:
    """A result's path within its run: results/<run>/traces/m/t.arrow -> traces/m/t.arrow.

    Outside of results/ it is the file's name. A folder that is still being written counts under
    its final name.
    """
    parts = [re.sub(r"^\.(.+)\.part$", r"\1", part) for part in Path(path).parts]
    return "/".join(parts[2:]) if parts[:1] == ["results"] else parts[-1]


def seal(path: Path) -> None:
    """Replace the `blank` in the metadata of a written file by the file's hash."""
    with path.open("r+b") as handle, mmap(handle.fileno(), 0) as content:
        value = _MARK + _hash(content)
        for start in _seals(content):
            content[start : start + len(value)] = value


def require_own(content: bytes | mmap, path: str | Path) -> None:
    """Raise `InputError` unless a file's bytes match their checksum and it belongs at `path`.

    A file without a checksum is foreign, and accepted outside of results/ only.
    """
    if _is_ours(Path(path)) and content.find(_MARK) < 0:
        raise unreadable(path, ValueError("it holds no checksum"))
    if is_broken(content):
        raise unreadable(path, ValueError("its bytes do not match its own checksum"))
    if owner := _OWNER.match(content, content.rfind(_MARK) + len(_BLANK)):
        _require_place(path, owner[1].decode())


def is_broken(content: bytes | mmap) -> bool:
    """Whether a file's bytes differ from the checksum in them; false without a checksum."""
    # Key or mark is enough to expect a checksum: one flipped bit cannot hide both.
    if content.find(KEY.encode()) < 0 and content.find(_MARK) < 0:
        return False
    checksums = {content[start : start + len(_BLANK)] for start in _seals(content)}
    return checksums != {_MARK + _hash(content)}


def made_with(path: Path) -> str:
    """The hash of the settings and code that made a result; '' where it does not say so."""
    try:
        if path.suffix not in SEALED:
            return read_sum(path)[2] if path.exists() else ""
        with path.open("rb") as handle, mmap(handle.fileno(), 0, access=ACCESS_READ) as content:
            owner = _OWNER.match(content, content.rfind(_MARK) + len(_BLANK))
            return owner[2].decode() if owner and owner[2] else ""
    except (OSError, ValueError):  # a reader says what is wrong with it
        return ""


def write_sum(path: str | Path) -> None:
    """Write the checksum of a file or folder beside it, with the path where it belongs."""
    text = _sum(digest(path), place(path), MADE_WITH.get())
    beside(path).write_text(text, encoding="utf-8")


def _sum(checksum: str, owner: str, made: str) -> str:
    line = f"{checksum}  {owner}\n"
    return line + (f"# {made} {hash_of(line + made)}\n" if made else "")


def read_sum(path: str | Path) -> tuple[str, str, str]:
    """The checksum beside a file or folder, its path within the run, and the hash of what made it.

    Older results have '' for the last. Raises `FileNotFoundError` where there is no checksum, and
    `InputError` where it is damaged.
    """
    try:
        text = beside(path).read_bytes().decode()
        line, *comment = text.splitlines()
        checksum, owner = line.split("  ", 1)
        made = comment[0].split()[1] if comment else ""
        if text != _sum(checksum, owner, made):
            raise ValueError
    except (ValueError, IndexError):
        raise unreadable(path, ValueError(f"its checksum {beside(path)} is damaged")) from None
    return checksum, owner, made


def require_sum(path: str | Path, given: bool = False) -> None:
    """Raise `InputError` unless what is at `path` belongs there and matches the checksum beside it.

    Only a foreign file may lack a checksum: one `given` to the workflow, outside of results/, or
    within a folder that has one.
    """
    try:
        checksum, owner, _ = read_sum(path)
    except FileNotFoundError:
        if not given and _is_ours(Path(path)):
            raise InputError(
                f"{path} has lost its checksum, {beside(path)}, so it cannot be "
                f"verified. {regenerate(path)}"
            ) from None
        return
    if checksum != digest(path):
        raise unreadable(path, ValueError(f"it does not match its checksum in {beside(path)}"))
    _require_place(path, owner)


def _is_ours(path: Path) -> bool:
    """Whether `path` is a result that needs a checksum of its own."""
    return path.parts[:1] == ("results",) and not any(
        beside(folder).exists() for folder in path.parents if folder.name
    )


def beside(path: str | Path) -> Path:
    """The file that holds the checksum of `path`."""
    path = Path(path)
    return path.with_name(f".{path.name}.sha256")


def _require_place(path: str | Path, owner: str) -> None:
    parts = Path(owner).parts
    if Path(path).parts[-len(parts) :] != parts:
        raise InputError(
            f"{path} is in the wrong place: it was made as {owner}. {regenerate(path)}"
        )


def _seals(content: bytes | mmap) -> set[int]:
    """Offsets of the checksum: in the metadata at a file's end, in Arrow files at the start too.

    Data lies between, and may hold anything.
    """
    last = content.rfind(_MARK)
    first = content.find(_MARK) if content[:6] == b"ARROW1" else last
    return {first, last} - {-1}


def _hash(content: bytes | mmap) -> bytes:
    """The SHA-256 of a file's bytes with blanks in place of the checksum; nothing is copied."""
    sha256, end = hashlib.sha256(), 0
    with memoryview(content) as view:
        for start in sorted(_seals(content)):
            sha256.update(view[end:start])
            sha256.update(_BLANK)
            end = start + len(_BLANK)
        sha256.update(view[end:])
    return sha256.hexdigest().encode()


MADE_WITH: ContextVar[str] = ContextVar("made_with", default="")


def hash_of(text: str) -> str:
    """The first 16 hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def text_hash(path: Path) -> str:
    """Hash of a text file that is not code, such as a template."""
    return hash_of(path.read_text(encoding="utf-8"))
