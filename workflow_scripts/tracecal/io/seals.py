"""Seals: the checksum and the owner of a result, in its own metadata.

`blank(path)` is written into the metadata, `seal(path)` replaces it by the hash of the file, and
`require_own` checks a file that is read.
"""

import hashlib
import re
from mmap import ACCESS_READ, mmap
from pathlib import Path

from tracecal.errors import unreadable
from tracecal.io.checksums import MADE_WITH, needs_checksum, place_in_run, read_sum, require_place

KEY = "tracecal.seal"
SEALED = (".arrow", ".parquet")
_MARK = b"seal-sha256:"
_BLANK = _MARK + b"0" * 64
_OWNER = re.compile(rb" of (.+?)(?: made with ([0-9a-f]{16}))?\n")


def blank(path: str | Path) -> dict[str, str]:
    """The metadata of the file at `path`: a blank checksum, its place, and what made it."""
    maker = f" made with {MADE_WITH.get()}" if MADE_WITH.get() else ""
    return {KEY: f"{_BLANK.decode()} of {place_in_run(path)}{maker}\n"}


def seal(path: Path) -> None:
    """Replace the `blank` in the metadata of a written file by the hash of the file."""
    with path.open("r+b") as handle, mmap(handle.fileno(), 0) as content:
        value = _MARK + _hash(content)
        for start in _seals(content):
            content[start : start + len(value)] = value


def require_own(content: bytes | mmap, path: str | Path) -> None:
    """Raise `InputError` unless the bytes of a file match their checksum and belong at `path`.

    A file without a checksum is foreign, and accepted only outside of results/.
    """
    if needs_checksum(Path(path)) and content.find(_MARK) < 0:
        raise unreadable(path, ValueError("it holds no checksum"))
    if is_broken(content):
        raise unreadable(path, ValueError("its bytes do not match its own checksum"))
    if owner := _OWNER.match(content, content.rfind(_MARK) + len(_BLANK)):
        require_place(path, owner[1].decode())


def is_broken(content: bytes | mmap) -> bool:
    """Whether the bytes of a file differ from the checksum in them; false without one."""
    # Key or mark is enough to expect a checksum: one flipped bit cannot hide both.
    if content.find(KEY.encode()) < 0 and content.find(_MARK) < 0:
        return False
    checksums = {content[start : start + len(_BLANK)] for start in _seals(content)}
    return checksums != {_MARK + _hash(content)}


def made_with(path: Path) -> str:
    """The hash of the settings and code that made a result; empty where it states none."""
    try:
        if path.suffix not in SEALED:
            return read_sum(path)[2] if path.exists() else ""
        if not path.is_file():
            return ""
        with path.open("rb") as handle, mmap(handle.fileno(), 0, access=ACCESS_READ) as content:
            owner = _OWNER.match(content, content.rfind(_MARK) + len(_BLANK))
            return owner[2].decode() if owner and owner[2] else ""
    except (OSError, ValueError):  # a reader says what is wrong with it
        return ""


def _seals(content: bytes | mmap) -> set[int]:
    """Offsets of the checksum: in the metadata at the end, and in Arrow files at the start too.

    The data between may hold anything.
    """
    last = content.rfind(_MARK)
    first = content.find(_MARK) if content[:6] == b"ARROW1" else last
    return {first, last} - {-1}


def _hash(content: bytes | mmap) -> bytes:
    """The SHA-256 of a file with blanks in place of the checksum; nothing is copied."""
    sha256, end = hashlib.sha256(), 0
    with memoryview(content) as view:
        for start in sorted(_seals(content)):
            sha256.update(view[end:start])
            sha256.update(_BLANK)
            end = start + len(_BLANK)
        sha256.update(view[end:])
    return sha256.hexdigest().encode()
