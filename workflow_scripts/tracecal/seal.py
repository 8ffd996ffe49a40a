"""A file's checksum, carried in its own metadata: a flipped bit is found when the file is read.

Arrow and Parquet readers notice a file that is cut short, not a value that has changed. A sealed
file is written with a blank seal, hashed, and the hash put where the blank was.
"""

import hashlib
from pathlib import Path

KEY = "tracecal.seal"
_MARK = b"seal-sha256:"
_BLANK = _MARK + b"0" * 64

# What a file's key-value metadata must hold to be sealed.
BLANK = {KEY: _BLANK.decode()}


def seal(path: Path) -> None:
    """Put the hash of a file, which was written with `BLANK` in its metadata, in its place."""
    content = path.read_bytes()
    path.write_bytes(_with(content, _MARK + _digest(content)))


def is_broken(content: bytes) -> bool:
    """Whether a file's bytes do not match the seal they hold; one without a seal is not broken."""
    # Either of key and mark calls for a seal: one flipped bit cannot hide both.
    if KEY.encode() not in content and _MARK not in content:
        return False
    found = {content[place : place + len(_BLANK)] for place in _places(content)}
    return found != {_MARK + _digest(_with(content, _BLANK))}


def _places(content: bytes) -> set[int]:
    """Where the metadata hold the seal: at a file's end, in Arrow files at the start as well.

    What lies between is data, which may hold anything.
    """
    last = content.rfind(_MARK)
    first = content.find(_MARK) if content.startswith(b"ARROW1") else last
    return {first, last} - {-1}


def _with(content: bytes, value: bytes) -> bytes:
    for place in _places(content):
        content = content[:place] + value + content[place + len(value) :]
    return content


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
