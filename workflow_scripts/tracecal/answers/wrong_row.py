"""Invalid rows of a file of answers: the error that readers raise, and the sentence about them."""

from collections.abc import Sequence

N_LISTED = 10


class WrongRow(ValueError):
    """A row of a file is invalid; the message says why, without naming the row."""


def describe_wrong_rows(messages: Sequence[str]) -> str:
    """The first invalid rows in one sentence, and the number of the rest.

    >>> describe_wrong_rows(["line 2: it has no id"])
    '1 invalid row(s): line 2: it has no id'
    """
    if not messages:
        return "It has no rows."
    rest = f"; and {len(messages) - N_LISTED} more" if len(messages) > N_LISTED else ""
    return f"{len(messages)} invalid row(s): {'; '.join(messages[:N_LISTED])}{rest}"
