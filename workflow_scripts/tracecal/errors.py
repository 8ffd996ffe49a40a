"""The exception whose message is shown to users, and messages that several modules raise."""

from collections.abc import Sequence
from pathlib import Path


class InputError(ValueError):
    """Something given to the workflow is not usable.

    The message is one sentence: what is wrong, where, what was expected, what to do.
    Jobs print it without a traceback.
    """


def require_columns(present: Sequence[str], needed: Sequence[str], path: str | Path) -> None:
    """Raise `InputError` where `needed` columns are missing from the file's `present` ones."""
    if missing := [name for name in needed if name not in present]:
        raise InputError(
            f"{path} lacks the column(s) {listed(missing)}; it has {listed(present)}. "
            f"{regenerate(path)}"
        )


def here(path: str | Path) -> str:
    """For a sentence: where a relative path is looked for."""
    return "" if Path(path).is_absolute() else f" in {Path.cwd()}, where Snakemake works"


def listed(names: Sequence[str], most: int = 20) -> str:
    """Names for a sentence: all of them where they are few."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])}, ... ({len(names)} in all)"


def unreadable(path: str | Path, error: Exception) -> InputError:
    """The error that says that `path` cannot be read, why, and how to remake it."""
    return InputError(
        f"{path} cannot be read ({str(error).strip().splitlines()[0]}): it is missing, cut short "
        f"or not of the expected format. {regenerate(path)}"
    )


def regenerate(path: str | Path) -> str:
    """What to do about a result that is not sound."""
    return f"Make it anew with: snakemake --cores all --force {path}"
