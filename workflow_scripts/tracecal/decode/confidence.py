"""Parsing the confidence that a reply states: one number, or none.

A percentage ("90 %"), a fraction ("9/10", "9 out of 10") or a bare number, in any script's
digits. A bare number up to 1 is a probability, from 2 on a percentage: "90" is 90 %, and "1" is
full confidence, not 1 %, because the default prompt asks for a number up to 1.
"""

import re

# A decimal comma has one or two digits after it: "1,000" is not a confidence
_NUMBER = r"(?:\d+(?:[.٫]\d+|,\d{1,2})?|[.٫]\d+)(?![.,٫]?\d)"
# Not inside a Latin word ("GPT4") or a longer number
_STATED = re.compile(
    rf"(?<![A-Za-z_\d.٫])(?<!\d,)(?P<sign>[-−]?)(?P<value>{_NUMBER})"
    rf"(?:\s*(?P<percent>%|٪|％|per\s?cent\b)|\s*(?:/|out of)\s*(?P<of>{_NUMBER}))?",
    re.IGNORECASE,
)


def parse_confidence(reply: str) -> float | None:
    """The confidence in [0, 1] that `reply` states.

    None where it states no confidence, one out of range, or several that differ.
    """
    stated = [_value(match) for match in _STATED.finditer(reply)]
    if not stated or any(value is None or not 0 <= value <= 1 for value in stated):
        return None
    first = stated[0]
    return first if all(abs(value - first) < 1e-9 for value in stated) else None


def _value(match: re.Match[str]) -> float | None:
    number = _number(match["value"])
    if match["sign"]:
        return None
    if match["percent"]:
        return number / 100
    if match["of"]:
        whole = _number(match["of"])
        return number / whole if whole else None
    if number <= 1:
        return number
    return number / 100 if number >= 2 else None


def _number(text: str) -> float:
    return float(text.replace(",", ".").replace("٫", "."))
