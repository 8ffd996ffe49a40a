"""Times of answers, as seconds since 1970."""

from datetime import UTC, datetime
from typing import Any

CENTURY = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def parse_moment(value: Any) -> float | None:
    """A time in seconds since 1970, from such a number or from ISO 8601 (UTC without an offset).

    None for anything else, and for times outside this century: placeholders and durations.

    >>> parse_moment("2026-03-01T12:00:00Z"), parse_moment(0)
    (1772366400.0, None)
    """
    try:
        if isinstance(value, datetime | str) and not str(value).replace(".", "").isdecimal():
            moment = datetime.fromisoformat(str(value))
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        else:
            seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if CENTURY[0].timestamp() <= seconds < CENTURY[1].timestamp() else None
