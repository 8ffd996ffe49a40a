"""Where a result belongs, and what made it."""

import re
from contextvars import ContextVar
from pathlib import Path

from tracecal.errors import InputError, regenerate


def place(path: str | Path) -> str:
    """A result's path within its run: results/<run>/traces/m/t.arrow -> traces/m/t.arrow.

    Outside of results/ it is the file's name. A folder that is still being written counts under
    its final name.
    """
    parts = [re.sub(r"^\.(.+)\.part$", r"\1", part) for part in Path(path).parts]
    return "/".join(parts[2:]) if parts[:1] == ["results"] else parts[-1]


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


MADE_WITH: ContextVar[str] = ContextVar("made_with", default="")
