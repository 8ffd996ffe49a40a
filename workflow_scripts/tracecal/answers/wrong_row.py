"""An invalid row of a file of answers."""


class WrongRow(ValueError):
    """A row of a file is invalid; the message says why, without naming the row."""


LISTED = 10


def listed(wrong: list[str]) -> str:
    """The first of the invalid rows, in one sentence."""
    if not wrong:
        return "It has no rows."
    more = f"; and {len(wrong) - LISTED} more" if len(wrong) > LISTED else ""
    return f"{len(wrong)} invalid row(s): {'; '.join(wrong[:LISTED])}{more}"
