"""The numbers in a text, and the one that an answer gives."""

import re
import unicodedata
from fractions import Fraction
from typing import NamedTuple

_NUMBER = re.compile(
    r"(?P<sign>(?<![\w)])-(?=[$€£¥]?\.?\d)|\b(?:minus|negative)\s+)?[$€£¥]?\s?"
    r"(?:(?<!\w)(?P<whole>\d+)\s+(?=\d+/\d))?"
    r"(?P<value>(?:(?<![\w.])\.\d+|(?<!\w)\d+)(?:[.,]\d+)*(?:[eE][+-]?\d+)?)"
    r"(?:\s?/\s?(?P<under>\d+(?:/\d+)*))?"
)
# Numbers in other forms, such as "3,5" or "1.234,5", are ambiguous and ignored.
_PLAIN = re.compile(r"(\d{1,3}(,\d{3})+(\.\d+)?|\d+(\.\d+)?|\.\d+)([eE][+-]?\d+)?")
_MARKER = re.compile(
    r"####|\\boxed\s*\{|\b(?:answer|antwort|respuesta)\b\W{0,4}(?:is|was|equals|ist|es|[:=])"
    r"|答案(?:是|为|：|:)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?:\s|$)|\n")
_OPERATOR_NEXT = re.compile(r"(?:\s+[^\W\d]+){0,2}\s*[-+*/×÷x=]\s*[$€£(]?\s*[\d(]")
_TO_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
)
_WORDS = {word: value for value, word in enumerate(_TO_TWENTY.split())}
# Longer runs of digits and larger exponents are noise, which Python rejects or hangs on.
_LONGEST_FIGURE = 1000
_LARGEST_EXPONENT = 999


class Number(NamedTuple):
    """A number as it is written, and its exact value."""

    text: str
    value: Fraction


def answer_number(text: str) -> Number | None:
    """The number that `text` gives as its answer; None without one.

    After the last marker ("####", "\\boxed{", "answer is", "Answer:" ...) it is the next number,
    or the result where that begins an equation; without a marker it is the last number. Units,
    currency and percent signs are ignored ("50%" is 50), and so are numbers whose commas do not
    group thousands. "1 1/2" and "½" are fractions. A number word up to twenty counts where the
    answer begins with it and has no digits.
    """
    text = _plain(text)
    markers = list(_MARKER.finditer(text))
    if markers:
        after_marker = text[markers[-1].end() :]
        if number := _first_or_result(after_marker) or _worded(after_marker):
            return number
    numbers = numbers_in(text)
    return numbers[-1] if numbers else _worded(text)


def numbers_in(text: str) -> list[Number]:
    """All numbers written in digits, in order."""
    return [
        Number(match[0].strip(), value)
        for match in _NUMBER.finditer(_plain(text))
        if (value := _value(match)) is not None
    ]


def only_number(text: str) -> Number | None:
    """The number that `text` consists of, apart from a unit of one word; None for other texts."""
    numbers = numbers_in(text)
    if len(numbers) == 1:
        rest = _plain(text).replace(numbers[0].text, " ", 1).strip(" .%$€£¥")
        return numbers[0] if len(rest.split()) <= 1 else None
    return None if numbers or len(text.split()) > 2 else _worded(text)


def _first_or_result(text: str) -> Number | None:
    first = next((m for m in _NUMBER.finditer(text) if _value(m) is not None), None)
    if first is None:
        return None
    if _OPERATOR_NEXT.match(text, first.end()):
        end = _SENTENCE_END.search(text, first.end())
        sentence = text[: end.start() + 1] if end else text
        results = numbers_in(sentence.rpartition("=")[2]) if "=" in sentence else []
        if results:
            return results[0]
    return Number(first[0].strip(), _value(first))


def _worded(text: str) -> Number | None:
    words = re.findall(r"[^\W\d_]+", text[:40])
    if words and words[0].lower() in _WORDS:
        return Number(words[0], Fraction(_WORDS[words[0].lower()]))
    return None


def _value(match: re.Match[str]) -> Fraction | None:
    if len(match[0]) > _LONGEST_FIGURE or not _PLAIN.fullmatch(match["value"]):
        return None
    value = match["value"].replace(",", "")
    value = "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in value)
    figures, _, exponent = value.lower().partition("e")
    if "/" in (match["under"] or ""):  # a date
        return None
    under = int(match["under"] or 1)
    if abs(int(exponent or 0)) > _LARGEST_EXPONENT or not under:
        return None
    value = Fraction(figures) * Fraction(10) ** int(exponent or 0) / under
    value += int(match["whole"] or 0)
    return -value if match["sign"] else value


def _plain(text: str) -> str:
    """`text` with one spelling of minus, fractions and thousands separators."""
    text = "".join(_fraction(character) for character in text)
    text = re.sub(r"[\u2212\u2012\u2013\ufe63\uff0d](?=\s?[$€£¥]?\.?\d)", "-", text)
    text = re.sub(r"\\d?frac\{(-?\d+)\}\{(\d+)\}", r"\1/\2", text)
    text = text.replace("\\$", "$").replace("{,}", ",").replace("\uff0c", ",")
    return re.sub(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))", "", text)


def _fraction(character: str) -> str:
    if "\u00bc" <= character <= "\u215e" and unicodedata.category(character) == "No":
        spelt = unicodedata.normalize("NFKD", character)
        if "\u2044" in spelt:
            return " " + spelt.replace("\u2044", "/")
    return character
