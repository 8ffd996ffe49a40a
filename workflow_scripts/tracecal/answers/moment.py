"""When an answer was given."""

from datetime import UTC, datetime
from typing import Any

CENTURY = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def moment(value: Any) -> float | None:
    """A time in seconds since 1970: such a number, or as ISO 8601, which without an offset is UTC.

    Null for anything else, and for times outside this century, which are placeholders or durations.

    >>> moment("2026-03-01T12:00:00Z"), moment(0)
    (1772366400.0, None)
    """
    try:
        if isinstance(value, datetime | str) and not str(value).replace(".", "").isdecimal():
            when = datetime.fromisoformat(str(value))
            seconds = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        else:
            seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if CENTURY[0].timestamp() <= seconds < CENTURY[1].timestamp() else None
