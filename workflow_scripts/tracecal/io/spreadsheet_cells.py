"""Texts in the cells of a spreadsheet, which executes some of them as formulas."""

import unicodedata
from typing import Any


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
