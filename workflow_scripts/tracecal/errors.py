"""Exceptions with messages for users, and messages that several modules raise."""

import re
from collections.abc import Sequence
from pathlib import Path

N_EXAMPLES = 3  # places or names to quote in a message
# What is typed as an option and is an argument of a function in Python, or a field of `Reading`,
# which names its fields here. Snakemake's --config stays as it is typed.
ARGUMENTS = {
    *("accuracy", "after", "answers", "answers_per_alarm", "auroc", "by", "calibrator"),
    *("chance", "confidence", "draws", "dtype", "end_token", "error_rate", "estimator"),
    *("estimators", "looks", "most", "number", "one_per", "output", "overall_error", "parts"),
    *("population", "recall", "second", "state", "task", "unit", "unlabelled", "weights"),
}
OF_READING: set[str] = set()
LISTS = {"right", "wrong", "options"}
PROSE = {"", "and", "or", "that", "where", "with", "as", "for", "is", "in", "to", "needs", "states"}
PROSE |= {"names", "reads", "if", "on", "must", "out", "what", "/"}
_OPTION = re.compile(  # or a command, which stays as it is typed
    r"'(?:tracecal|snakemake|python)\b[^']*'"
    r"|--(?P<name>[a-z][a-z-]*)(?P<words>(?: [\w.]+=\S+)+| '[^']*'| [^\s'(]+)?"
)


class InputError(ValueError):
    """An input that cannot be used.

    The message says what is wrong, where, what was expected, and what to do, in the words of
    Python. Commands print its only argument, which names options as they are typed.

    Examples
    --------
    >>> import tracecal
    >>> tracecal.read_answers("missing.jsonl")
    Traceback (most recent call last):
    tracecal.errors.InputError: missing.jsonl cannot be read in ...
    """

    def __str__(self) -> str:
        return in_python(str(self.args[0]) if self.args else "")


def in_python(message: str) -> str:
    """A message in which options of commands are the arguments of Python.

    >>> in_python("leave them out with --error-rate 0.2")
    'leave them out with error_rate=0.2'
    """
    return _OPTION.sub(_as_argument, message).replace(") Reading(", ", ")


def _as_argument(match: re.Match[str]) -> str:
    """An option as an argument of `Reading`, or of a function; unchanged where it is of neither."""
    name, words = (match["name"] or "").replace("-", "_"), match["words"] or ""
    if name not in OF_READING | ARGUMENTS:
        return match[0]
    text = words.strip()
    rest = text[len(text.rstrip(".,;:?)")) :]
    value = text.removesuffix(rest)
    if value in PROSE:
        value, rest = "", words
    if not value:
        return (f"Reading({name}=...)" if name in OF_READING else name) + rest
    pairs = [pair.split("=", 1) for pair in value.split() if "=" in pair]
    literal: object = dict(pairs) if pairs else value.strip("'")
    if name in LISTS:
        literal = value.split(",")
    is_number = value.replace(".", "", 1).isdecimal()
    argument = f"{name}={value if is_number else repr(literal)}"
    return (f"Reading({argument})" if name in OF_READING else argument) + rest


class WrongRow(ValueError):
    """An invalid row of a file; the message says why, without naming the row."""


class WrongVerdict(WrongRow):
    """A row whose verdict is neither right nor wrong; it is not skipped."""


class Unanswered(ValueError):
    """A row that holds no answer; the message is why, one of `raw_answer.NoAnswer`."""


def require_columns(present: Sequence[str], needed: Sequence[str], path: str | Path) -> None:
    """Raise `InputError` where `needed` columns are missing from the file's `present` ones."""
    if missing := [name for name in needed if name not in present]:
        raise InputError(
            f"{path} lacks the column(s) {listed(missing)}; it has {listed(present)}. "
            f"{regenerate(path)}"
        )


def here(path: str | Path) -> str:
    """Name in a sentence the folder that a relative path refers to."""
    if Path(path).is_absolute():
        return ""
    try:
        return f" in {Path.cwd()}"
    except FileNotFoundError:
        return " in a folder that was deleted"


def listed(names: Sequence[str]) -> str:
    """Join names for a sentence: up to twenty, then their number."""
    more = f", ... ({len(names)} in all)" if len(names) > 20 else ""
    return ", ".join(names[:20]) + more


def unreadable(path: str | Path, error: Exception) -> InputError:
    """Make the error for an unreadable file: why, and how to make it again."""
    return InputError(
        f"{path} cannot be read ({str(error).strip().splitlines()[0]}): it is missing, cut short "
        f"or not of the expected format. {regenerate(path)}"
    )


def regenerate(path: str | Path) -> str:
    """Say how to make an unusable file again; results of a run have a command."""
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
