"""Whether an answer is correct, in the words, marks and numbers that files use.

1. `parse_verdict(value, reading)` reads a verdict: all readers share its words. *Unsure* counts as
   wrong, as an answer that nobody can confirm must not help a guarantee.
2. `agreed_verdict(reading, **values)` reads several of one answer, which must agree.
"""

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from tracecal.answers.reading import USUAL_READING, Reading
from tracecal.errors import WrongVerdict

# In any case.
RIGHT = (
    *("right", "correct", "true", "yes", "pass", "passed", "good", "ok", "accepted", "approved"),
    *("accept", "approve", "supported", "grounded", "faithful", "factual", "valid", "success"),
    *("thumbs up", "c", "y", "t", "1", "👍", "✅", "✔", "✓", "☑", "🟢", "🟩", "💯"),
)
WRONG = (
    *("wrong", "incorrect", "false", "no", "fail", "failed", "bad", "not ok", "rejected"),
    *("reject", "not correct", "unsupported", "not supported", "hallucinated", "hallucination"),
    *("ungrounded", "not grounded", "unfaithful", "invalid", "failure", "thumbs down"),
    *("i", "n", "f", "0", "👎", "❌", "✖", "✕", "✗", "✘", "🔴", "🟥"),
)
UNSURE = ("unsure", "unknown", "unclear", "skip", "skipped", "ignore", "?", "🤷", "❓", "❔")
NONE = ("", "nan", "none", "null", "n/a", "#n/a", "n.a", "na", "<na>", "-", "--", "–", "—")
WORDS = dict.fromkeys(RIGHT, True) | dict.fromkeys((*WRONG, *UNSURE), False)
# What changes no verdict: an emoji's variants, joiners, sexes and skin tones, a keycap, invisible
# characters, quotation marks and emphasis, and what ends a sentence.
_VARIANTS = re.compile("[\ufe0e\ufe0f\u200d\u20e3\u200b\ufeff♀♂\U0001f3fb-\U0001f3ff]")
_QUOTES = " *_\"'`“”"
_HYPHENS = re.compile(r"(?<=[^\W\d_])[-_](?=[^\W\d_])")  # between words
_STARS = "⭐★☆"
# A number, its per cent, and what a scale says of it: "5 - fully correct", "(4) mostly", "4/5".
_NUMBER = re.compile(
    r"[(\[]?([-+]?(?:\d+(?:\.\d*)?|\.\d+|\d+,\d\d?)(?:e[-+]?\d+)?)[)\]]?\s*(%?)"
    r"(?:\s*[-–—:=.)|]\s*([^\d\s].*)|\s+(\D.*)|/\s*\d+)?",
    re.S,
)
# A number behind its meaning: "strongly agree (5)", "rating: 4", "fully correct - 5".
_LAST = re.compile(
    r"(?<!\D)(\W*)([^\W\d]\D*?)(?:\s?[:=(\[]\s?|\s[-–—]\s)([-+]?\d[\d.,]*\s?%?)[)\]]?"
)


def parse_verdict(value: Any, reading: Reading | None = None) -> bool | None:
    """Parse whether an answer is correct; None if `value` is empty or NaN.

    `reading` may name further words, and the smallest number of a correct answer, where verdicts
    are scores. Raises `WrongVerdict` for any other value.

    >>> parse_verdict("C"), parse_verdict("❌ wrong"), parse_verdict("unsure"), parse_verdict("")
    (True, False, False, None)
    >>> parse_verdict("5 - fully correct", Reading(right_from=4))
    True
    """
    reading = reading or USUAL_READING
    further = {_text(word): True for word in reading.right} | dict.fromkeys(
        map(_text, reading.wrong), False
    )
    words = WORDS | further
    word = _without_marks(_text(value), words)
    if word in NONE and word not in further:
        return None
    number, meaning = (None, "") if isinstance(value, bool) or word in further else _number(word)
    if number is not None and reading.right_from is not None:
        is_per_cent = "%" in str(word) and reading.right_from > 1
        return (100 * number if is_per_cent else number) >= reading.right_from
    if word in words:
        return words[word]
    is_verdict = number in (0.0, 1.0)
    if is_verdict and words.get(meaning or f"{number:g}") is (number == 1):
        return number == 1
    if number is not None and not is_verdict:
        raise WrongVerdict(
            f"its verdict is the number {number:g}, neither 1 nor 0: give a threshold, such as "
            "--right-from 0.5"
        )
    raise WrongVerdict(
        f"its verdict {value!r:.80} is neither right (correct, true, yes, pass, good, C, 1) nor "
        "wrong (incorrect, false, no, fail, bad, I, 0) nor unsure: name further words, as in "
        "--right fine,great --wrong poor"
    )


def is_unsure(value: Any) -> bool:
    """Whether a verdict says that nobody could tell.

    >>> is_unsure("Unsure"), is_unsure("wrong")
    (True, False)
    """
    return _without_marks(_text(value), WORDS) in UNSURE


def agreed_verdict(reading: Reading | None = None, /, **values: Any) -> bool | None:
    """Return the verdict that all `values` agree on; None if all are empty.

    Raises `WrongVerdict`.
    """
    verdicts = {name: parse_verdict(value, reading) for name, value in values.items()}
    verdicts = {name: verdict for name, verdict in verdicts.items() if verdict is not None}
    if len(set(verdicts.values())) > 1:
        contradiction = " beside ".join(f"{name}: {values[name]!r}" for name in verdicts)
        raise WrongVerdict(f"its verdicts contradict each other ({contradiction}); leave one out")
    return next(iter(verdicts.values()), None)


def alone(value: Any) -> Any:
    """The only element of a list; None for an empty list, and any other value unchanged.

    >>> alone([["yes"]]), alone(["yes", "no"])
    ('yes', ['yes', 'no'])
    """
    while isinstance(value, list) and len(value) < 2:
        value = value[0] if value else None
    return value


def _text(value: Any) -> str | None:
    """A value in small letters, '' for None; None for what is no text, number or truth value."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_plain = isinstance(value, bool | int | float | Decimal | str)
    text = _HYPHENS.sub(" ", " ".join(str(value).casefold().split())) if is_plain else None
    return text and (_VARIANTS.sub("", text).lstrip(_QUOTES).rstrip(_QUOTES + ".!") or text)


def _without_marks(word: str | None, words: Mapping[str, bool]) -> str | None:
    """A word without the marks that say the same beside it: "✅ correct"."""
    marks = [mark for mark in word or "" if not mark.isascii() and mark in WORDS]
    if not word or not marks:
        return word
    rest = "".join(letter for letter in word if letter not in marks).strip() or marks[0]
    return rest if {words.get(rest), *map(words.get, marks)} == {words[marks[0]]} else word


def _number(word: str | None) -> tuple[float | None, str]:
    """The number of a verdict, and what a scale says of it."""
    if word and not word.strip(_STARS):
        return float(len(word) - word.count("☆")), ""
    match = _NUMBER.fullmatch(_LAST.sub(r"\1\3 - \2", word or ""))
    if match is None:
        return None, ""
    digits, per_cent, meaning, more = match.groups()
    number = float(digits.replace(",", ".")) / (100 if per_cent else 1)
    return (number if math.isfinite(number) else None), (meaning or more or "").strip("()[] ")
