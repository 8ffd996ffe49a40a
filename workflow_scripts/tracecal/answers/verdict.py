"""Verdicts: whether an answer is correct, in the words and numbers that files use.

All readers of verdicts share one list of words. *Unsure* is a verdict and counts as wrong: an
answer that nobody can confirm must not help a guarantee.
"""

import math
from typing import Any

import numpy as np

from tracecal.errors import WrongRow

# In any case.
RIGHT = (
    *("right", "correct", "true", "yes", "pass", "passed", "good", "ok", "accepted", "approved"),
    *("c", "y", "t", "1", "👍"),
)
WRONG = (
    *("wrong", "incorrect", "false", "no", "fail", "failed", "bad", "not ok", "rejected"),
    *("i", "n", "f", "0", "👎"),
)
UNSURE = ("unsure", "unknown", "unclear", "skip", "skipped", "?")
NONE = ("", "nan", "none", "null", "n/a", "na", "-")
WORDS = dict.fromkeys(RIGHT, True) | dict.fromkeys((*WRONG, *UNSURE), False)


def parse_verdict(value: Any, right_from: float | None = None) -> bool | None:
    """Parse whether an answer is correct; None if `value` is empty or NaN.

    `right_from` is the smallest number of a correct answer, where verdicts are scores. Raises
    `WrongRow` for any other value.

    >>> parse_verdict("C"), parse_verdict("FALSE"), parse_verdict("unsure"), parse_verdict("")
    (True, False, False, None)
    >>> parse_verdict(0.7, right_from=0.5)
    True
    """
    word = _word(value)
    if word in NONE:
        return None
    number = None if isinstance(value, bool) else _number(word)
    if number is not None and right_from is not None:
        return number >= right_from
    if number in (0.0, 1.0):
        return number == 1
    if number is not None:
        raise WrongRow(
            f"its verdict is the number {number:g}, neither 1 nor 0: give a threshold, such as "
            "--right-from 0.5"
        )
    if word not in WORDS:
        raise WrongRow(
            f"its verdict {value!r} is neither right (correct, true, yes, pass, good, C, 1) nor "
            "wrong (incorrect, false, no, fail, bad, I, 0) nor unsure; write it as one of these"
        )
    return WORDS[word]


def is_unsure(value: Any) -> bool:
    """Whether a verdict says that nobody could tell.

    >>> is_unsure("Unsure"), is_unsure("wrong")
    (True, False)
    """
    return _word(value) in UNSURE


def agreed_verdict(right_from: float | None = None, /, **values: Any) -> bool | None:
    """Return the verdict that all `values` agree on; None if all are empty. Raises `WrongRow`."""
    verdicts = {name: parse_verdict(value, right_from) for name, value in values.items()}
    verdicts = {name: verdict for name, verdict in verdicts.items() if verdict is not None}
    if len(set(verdicts.values())) > 1:
        contradiction = " beside ".join(f"{name}: {values[name]!r}" for name in verdicts)
        raise WrongRow(f"its verdicts contradict each other ({contradiction}); leave one out")
    return next(iter(verdicts.values()), None)


def _word(value: Any) -> str | None:
    """A value in small letters, '' for None; None for what is no text, number or truth value."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return ""
    return str(value).strip().casefold() if isinstance(value, bool | int | float | str) else None


def _number(word: str | None) -> float | None:
    try:
        number = float(word or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None
