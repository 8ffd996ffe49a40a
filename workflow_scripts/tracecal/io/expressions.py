"""Regular expressions that users state, with a limit on the time that a match may take.

The package `regex` reads what Python's ``re`` reads and can be told when to stop: an expression
such as `(a|a)*b` would run for ever on a few dozen letters of a model's text.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from time import process_time
from typing import TYPE_CHECKING

from tracecal.errors import InputError

if TYPE_CHECKING:  # slow to load, and not needed at import
    import regex

PATIENCE = 1.0  # CPU seconds of an expression on one answer


@cache
def compiled(expression: str, dotall: bool = False) -> "regex.Pattern[str]":
    """The compiled expression. Raises `ValueError` where it is invalid."""
    import regex

    try:
        return regex.compile(expression, regex.DOTALL if dotall else 0)
    except regex.error as error:
        raise ValueError(f"is not a regular expression ({error})") from error


def parsed(expression: str) -> "re.Pattern[str] | regex.Pattern[str]":
    """The expression, to ask about its groups. Raises `ValueError` where it is invalid.

    The package `regex` is loaded only for what Python's ``re`` does not read, so that a
    configuration can be read where `regex` is not installed.

    >>> parsed("answer: ([0-9]+)").groups
    1
    """
    try:
        return re.compile(expression)
    except re.error:
        return compiled(expression)


def matches(expression: str, text: str, dotall: bool = False) -> "Iterator[regex.Match[str]]":
    """All matches in a text, from left to right. Raises `InputError` where they take too long.

    >>> [match[0] for match in matches("[0-9]+", "3 of 14")]
    ['3', '14']
    """
    try:
        yield from compiled(expression, dotall).finditer(text, timeout=PATIENCE)
    except TimeoutError:
        raise _endless(expression, text) from None


def searcher(expression: str, text: str) -> "Callable[[str], regex.Match[str] | None]":
    """A function that finds the first match in a line of `text`.

    All lines together may take as long as `matches` may.
    """
    search, deadline = compiled(expression).search, process_time() + PATIENCE

    def search_line(line: str) -> "regex.Match[str] | None":
        try:
            return search(line, timeout=max(deadline - process_time(), 0))
        except TimeoutError:
            raise _endless(expression, text) from None

    return search_line


def _endless(expression: str, text: str) -> InputError:
    return InputError(
        f"the regular expression {expression!r} takes over {PATIENCE:g} s for the answer that "
        f"begins {text[:60]!r}: write it so that no two of its repetitions can match the same text."
    )
