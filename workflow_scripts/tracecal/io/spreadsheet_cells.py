"""Plain values: nested settings and facts that are safe to keep, and to show on a page or terminal.

`require_plain` refuses what no schema allows, `require_visible` what a terminal must not show, and
`escape_formula` keeps spreadsheets from executing a text.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from tracecal.errors import InputError

MOST_VALUES = 2**24  # in settings with aliases expanded
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # all but tabs and line ends


def require_plain(value: Any, where: str) -> None:
    """Raise `InputError` for too many values, and for text with a script or a lone surrogate.

    Snakemake's report writes rules' parameters, and so these texts, into a script unescaped.
    Prompts may hold other tags.
    """
    require_small(value, where)
    for keys, text in _texts(value):
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise InputError(f"{where}: {key_path(keys)}: holds an unpaired surrogate")
        if tag := re.search(r"</?script|<!--", text, re.IGNORECASE):
            raise InputError(
                f"{where}: {key_path(keys)}: {tag[0]!r} would run in the report's page; leave it "
                "out"
            )


def require_visible(value: Any, where: str) -> None:
    """Raise `InputError` for text that holds a character that controls a terminal."""
    require_small(value, where)
    for keys, text in _texts(value):
        if control := CONTROL.search(text):
            raise InputError(
                f"{where}: {key_path(keys)}: holds the control character {control[0]!r}, which "
                "would steer the terminal that shows it"
            )


def escape_formula(value: Any) -> Any:
    """The value; text that a spreadsheet may execute begins with an apostrophe.

    Blanks and line ends may stand before the sign, which may have its full width.

    >>> escape_formula("a-b"), escape_formula("=1+1"), escape_formula(-1)
    ('a-b', "'=1+1", -1)
    """
    if not isinstance(value, str) or not value:
        return value
    sign = unicodedata.normalize("NFKC", value.lstrip()[:1])
    return f"'{value}" if sign in tuple("=+-@") or value[0] in "\t\r\n" else value


def _texts(value: Any, *keys: str | int) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """All texts in nested mappings and lists, each with its path of keys."""
    if isinstance(value, str):
        yield keys, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(item, *keys, key)


def require_small(value: Any, where: str) -> None:
    """Raise `InputError` for too many values: by aliases, few lines of YAML can hold billions."""
    try:
        size = _size(value, {})
    except RecursionError:
        raise InputError(f"{where}: it contains itself, or is nested too deep.") from None
    if size > MOST_VALUES:
        raise InputError(f"{where}: its aliases stand for {size:,} values; write them out.")


def _size(value: Any, sizes: dict[int, int]) -> int:
    """Count the values with aliases expanded; `sizes` holds the parts' counts by id."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in sizes:
        parts = value.values() if isinstance(value, dict) else value
        sizes[id(value)] = 1 + sum(_size(part, sizes) for part in parts)
    return sizes[id(value)]


def key_path(keys: Sequence[str | int]) -> str:
    """Write the keys to a value as one path.

    >>> key_path(["models", 0, "path"])
    'models[0].path'
    """
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in keys]
    return "".join(steps).removeprefix(".")
