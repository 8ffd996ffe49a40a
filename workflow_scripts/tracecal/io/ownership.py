"""Where a result belongs within its run, and what made it."""

import re
from contextvars import ContextVar
from pathlib import Path

from tracecal.errors import InputError, regenerate

# The hash of the settings and code of this process's job, which its results hold.
MADE_WITH: ContextVar[str] = ContextVar("made_with", default="")


def place_in_run(path: str | Path) -> str:
    """The path of a result within its run; outside of results/ the name of the file.

    A folder that is still being written counts under its final name.

    >>> place_in_run("results/smoke/traces/m/t.arrow")
    'traces/m/t.arrow'
    """
    parts = [re.sub(r"^\.(.+)\.part$", r"\1", part) for part in Path(path).parts]
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
