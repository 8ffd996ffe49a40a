"""Checksums: the hash and the owner of a file or folder, in a small file beside it.

The owner is the place of a result within its run, and what made it.
"""

import re
from contextvars import ContextVar
from pathlib import Path

from tracecal.errors import InputError, regenerate, unreadable
from tracecal.io.digests import digest, hash_of
from tracecal.io.regular_files import read_regular

MOST_BYTES = 2**16  # of a checksum's file

# The hash of the settings and code of this process's job, which its results hold.
MADE_WITH: ContextVar[str] = ContextVar("made_with", default="")
# Where this process's job has copies of a bucket's files; empty where results are on a disk.
STORED_IN: ContextVar[str] = ContextVar("stored_in", default="")


def place_in_run(path: str | Path) -> str:
    """The path of a result within its run; outside of results/ the name of the file.

    A folder that is still being written counts under its final name, and a copy of a bucket's file
    as if it were on a disk.

    >>> place_in_run("results/smoke/traces/m/t.arrow")
    'traces/m/t.arrow'
    >>> token = STORED_IN.set("/scratch/s3/bucket/")
    >>> place_in_run("/scratch/s3/bucket/results/smoke/traces/m/t.arrow")
    'traces/m/t.arrow'
    >>> STORED_IN.reset(token)
    """
    path = Path(path)
    if path.is_relative_to(STORED_IN.get()):
        path = path.relative_to(STORED_IN.get())
    parts = [re.sub(r"^\.(.+)\.part$", r"\1", part) for part in path.parts]
    return "/".join(parts[2:]) if parts[:1] == ["results"] else parts[-1]


def require_place(path: str | Path, owner: str) -> None:
    """Raise `InputError` unless a result that was made as `owner` is there."""
    parts = Path(owner).parts
    if Path(path).parts[-len(parts) :] != parts:
        raise InputError(
            f"{path} is in the wrong place: it was made as {owner}. {regenerate(path)}"
        )


def needs_checksum(path: Path) -> bool:
    """Whether `path` is a result that needs a checksum of its own."""
    return path.parts[:1] == ("results",) and not any(
        checksum_path(folder).exists() for folder in path.parents if folder.name
    )


def checksum_path(path: str | Path) -> Path:
    """The file beside `path` that holds its checksum."""
    path = Path(path)
    return path.with_name(f".{path.name}.sha256")


def write_sum(path: str | Path) -> None:
    """Write the checksum of a file or folder beside it, with the place where it belongs."""
    text = _checksum_text(digest(path), place_in_run(path), MADE_WITH.get())
    checksum_path(path).unlink(missing_ok=True)  # a link, or a second name of another file
    checksum_path(path).write_text(text, encoding="utf-8")


def read_sum(path: str | Path) -> tuple[str, str, str]:
    """Read the checksum of a file or folder, its place in its run, and the hash of what made it.

    The last is empty in older results. Raises `FileNotFoundError` without a checksum, and
    `InputError` where it is damaged.
    """
    try:
        text = read_regular(checksum_path(path), MOST_BYTES).decode()
        line, *comment = text.splitlines()
        checksum, owner = line.split("  ", 1)
        maker = comment[0].split()[1] if comment else ""
        if text != _checksum_text(checksum, owner, maker):
            raise ValueError
    except (ValueError, IndexError):
        raise unreadable(
            path, ValueError(f"its checksum {checksum_path(path)} is damaged")
        ) from None
    return checksum, owner, maker


def require_sum(path: str | Path, foreign: bool = False) -> None:
    """Raise `InputError` unless what is at `path` belongs there and matches its checksum.

    Only a `foreign` file, one outside of results/ or within a folder that has a checksum may lack
    one.
    """
    try:
        checksum, owner, _ = read_sum(path)
    except FileNotFoundError:
        if not foreign and needs_checksum(Path(path)):
            raise InputError(
                f"{path} has lost its checksum, {checksum_path(path)}, so it cannot be "
                f"verified. {regenerate(path)}"
            ) from None
        return
    if checksum != digest(path):
        raise unreadable(
            path, ValueError(f"it does not match its checksum in {checksum_path(path)}")
        )
    require_place(path, owner)


def _checksum_text(checksum: str, owner: str, maker: str) -> str:
    line = f"{checksum}  {owner}\n"
    return line + (f"# {maker} {hash_of(line + maker)}\n" if maker else "")
