"""The exceptions whose messages are shown to users, and messages that several modules raise."""

from collections.abc import Sequence
from pathlib import Path

N_EXAMPLES = 3  # of places or names that a message quotes


class InputError(ValueError):
    """An input of the workflow cannot be used.

    The message is one sentence: what is wrong, where, what was expected, what to do. Jobs print it
    without a traceback.
    """


class WrongRow(ValueError):
    """A row of a file is invalid; the message says why, without naming the row."""


class FailedRequest(WrongRow):
    """A row is of a request that failed, so it holds no answer."""


def require_columns(present: Sequence[str], needed: Sequence[str], path: str | Path) -> None:
    """Raise `InputError` where `needed` columns are missing from the file's `present` ones."""
    if missing := [name for name in needed if name not in present]:
        raise InputError(
            f"{path} lacks the column(s) {listed(missing)}; it has {listed(present)}. "
            f"{regenerate(path)}"
        )


def here(path: str | Path) -> str:
    """Name in a sentence the folder that a relative path refers to."""
    return "" if Path(path).is_absolute() else f" in {Path.cwd()}"


def listed(names: Sequence[str]) -> str:
    """Names for a sentence: up to twenty, then their number."""
    more = f", ... ({len(names)} in all)" if len(names) > 20 else ""
    return ", ".join(names[:20]) + more


def unreadable(path: str | Path, error: Exception) -> InputError:
    """The error for a file that cannot be read: why, and how to make it again."""
    return InputError(
        f"{path} cannot be read ({str(error).strip().splitlines()[0]}): it is missing, cut short "
        f"or not of the expected format. {regenerate(path)}"
    )


def regenerate(path: str | Path) -> str:
    """How an unusable file is made again, as a sentence: a run's results have a command."""
    if Path(path).parts[:1] != ("results",):
        return "Make it again as it was made, or give another."
    return f"Make it again with: snakemake --cores all --force {path}"


def some_of(names: Sequence[object], number: int = N_EXAMPLES) -> str:
    """The first names for a sentence, with dots where there are more.

    >>> some_of(["a", "b", "c", "d"])
    'a, b, c, ...'
    """
    return ", ".join([*map(str, names[:number]), *(["..."] if len(names) > number else [])])


def describe_wrong_rows(messages: Sequence[str]) -> str:
    """How many rows are invalid, and why: up to three reasons, each with up to three places.

    `messages` are places and reasons, such as "line 2: it has no id".

    >>> describe_wrong_rows(["line 2: it has no id"])
    '1 invalid row(s): line 2: it has no id'
    >>> describe_wrong_rows([f"line {n}: it has no id" for n in range(1, 6)])
    '5 invalid row(s): line 1, line 2, line 3, ...: it has no id'
    """
    if not messages:
        return "It has no rows."
    places: dict[str, list[str]] = {}
    for message in messages:
        location, _, reason = message.partition(": ")
        places.setdefault(reason, []).append(location)
    reasons = [f"{some_of(where)}: {reason}" for reason, where in places.items()]
    n_more = sum(len(where) for where in [*places.values()][N_EXAMPLES:])
    more = f"; and {n_more} more" if n_more else ""
    return f"{len(messages)} invalid row(s): {'; '.join(reasons[:N_EXAMPLES])}{more}"
