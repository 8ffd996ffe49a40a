"""Whether an answer, or a part of it, is correct, in the words, marks and numbers that files use.

1. `parse_verdict(value, reading)` reads a verdict: all readers share its words. *Unsure* counts as
   wrong, as an answer that nobody can confirm must not help a guarantee.
2. `agreed_verdict(reading, **values)` reads several of one answer, which must agree.
3. `split_part_labels(row)` takes the verdicts or wrong spans of an answer's parts out of its row.
"""

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

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
_VARIANTS = re.compile(
    "[\ufe0e\ufe0f\u200d\u20e3\u200b\ufeff♀♂\U0001f3fb-\U0001f3ff]"
    "|^[\\s*_\"'`“”]+|[\\s.!*_\"'`“”]+$"
)
_HYPHENS = re.compile(r"(?<=[^\W\d_])[-_](?=[^\W\d_])")  # between words
_STARS = "⭐★☆"
# A number, its per cent, and what a scale says of it: "5 - fully correct", "(4) mostly", "4/5".
_NUMBER = re.compile(
    r"[(\[]?([-+]?(?:\d+\.?\d*|\.\d+|\d+,\d\d?)(?:e[-+]?\d+)?)[)\]]?\s*(%?)"
    r"(?:\s*[-–—:=.)|]\s*([^\d\s].*)|\s+(\D.*)|/\s*\d+)?",
    re.S,
)
# A number behind its meaning: "strongly agree (5)", "rating: 4", "fully correct - 5".
_LAST = re.compile(r"([^\W\d]\D*?)(?:\s*[:=(\[]\s*|\s+[-–—]\s+)([-+]?\d[\d.,]*\s*%?)[)\]]?")


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
    text = _HYPHENS.sub(" ", str(value).strip().casefold()) if is_plain else None
    return text and (_VARIANTS.sub("", text) or text)


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
    match = _NUMBER.fullmatch(_LAST.sub(r"\2 - \1", word or ""))
    if match is None:
        return None, ""
    digits, per_cent, meaning, more = match.groups()
    number = float(digits.replace(",", ".")) / (100 if per_cent else 1)
    return (number if math.isfinite(number) else None), (meaning or more or "").strip("()[] ")


class PartLabels(NamedTuple):
    """Labels of the parts of an answer; None where its row has none of the kind.

    Attributes
    ----------
    correct
        Verdicts, by the name of the part.
    wrong_spans
        Characters [start, end) of the answer that are wrong; a part that overlaps any is wrong.
    single
        Whether the row is a line of `tracecal label` on one part; the other parts of its answer
        have lines of their own.
    """

    correct: Mapping[str, bool] | None = None
    wrong_spans: list[tuple[int, int]] | None = None
    single: bool = False

    def merge(self, labels: "PartLabels") -> "PartLabels | None":
        """Both labels of one answer together; None unless each is of a single part."""
        if not (self.single and labels.single):
            return None
        return self._replace(correct={**(self.correct or {}), **(labels.correct or {})})


def split_part_labels(row: Any) -> tuple[Any, PartLabels | None]:
    """A row without its labels of parts, and the labels; None where it has none.

    Raises `WrongVerdict` where they are not verdicts or spans.

    >>> row, labels = split_part_labels({"id": "q", "correct": {"capital": 1, "currency": "I"}})
    >>> row, labels.correct
    ({'id': 'q'}, {'capital': True, 'currency': False})
    """
    if not isinstance(row, dict):
        return row, None
    values, spans, labelled = row.get("correct"), row.get("wrong_spans"), row.get("labelled")
    if single := isinstance(labelled, dict) and isinstance(labelled.get("part"), str):
        row = {name: row[name] for name in row if name != "labelled"}
        verdict = labelled.get("correct")
        values, spans = {labelled["part"]: "unsure" if verdict is None else verdict}, None
    correct = None
    if isinstance(values, dict):
        verdicts = {str(name): parse_verdict(value) for name, value in values.items()}
        correct = {name: value for name, value in verdicts.items() if value is not None}
    if spans is not None:
        spans = _parse_spans(spans)
    if correct is None and spans is None:
        return row, None
    removed = {"wrong_spans", *(["correct"] if correct is not None else [])}
    labels = PartLabels(correct, spans, single)
    return {name: row[name] for name in row if name not in removed}, labels


def _parse_spans(spans: Any) -> list[tuple[int, int]]:
    pairs = spans if isinstance(spans, list) else [None]
    for pair in pairs:
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2
        if not is_pair or not all(type(end) is int for end in pair) or not 0 <= pair[0] < pair[1]:
            raise WrongVerdict(
                f"its wrong_spans {spans!r} are not a list of pairs [start, end) of characters"
            )
    return [(start, end) for start, end in pairs]
