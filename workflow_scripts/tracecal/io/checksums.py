"""The checksum and owner of a result in a small file beside it."""

from pathlib import Path

from tracecal.errors import InputError, regenerate, unreadable
from tracecal.io.digests import digest, hash_of
from tracecal.io.ownership import MADE_WITH, _is_ours, _require_place, beside, place


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
