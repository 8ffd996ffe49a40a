"""Texts to compare: the benchmarks' official normalisations, numbers, and places of references."""

import re
import string
import sys
import unicodedata
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

# TriviaQA: ASCII punctuation and four quotation marks become spaces.
_TRIVIA_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))

# MLQA: Unicode's P* categories and ASCII punctuation (which has symbols such as $ and +) vanish.
MLQA_PUNCTUATION = frozenset(string.punctuation) | frozenset(
    chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == "P"
)
_MLQA_REMOVED = str.maketrans(dict.fromkeys(MLQA_PUNCTUATION, ""))

# Arabic: the official pattern is `\sال^|ال`. Its first half can never match ('^' after text), so
# its second half removes every "ال" in a word, not only the article at its beginning: العالم
# becomes "ع م", not "عالم". We keep it: both sides of a comparison are treated alike, a space is
# left behind (so that words do not merge into others), and exact matches stay comparable with
# published ones. A rule for the beginnings of words gives the same verdicts on real rows (tested).
MLQA_ARTICLES = {
    "en": r"\b(a|an|the)\b",
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": "ال",
}
_HAN = re.compile("([\u4e00-\u9fa5])")
# Removed from claims, as they separate no words: apostrophes, joiners of letters, and Arabic's
# vowel marks and tatweel, which most writers leave out.
_UNWRITTEN = re.compile("['’‘`´\u200c\u200d\u0640\u064b-\u0652\u0670]")


def trivia(text: str) -> str:
    """TriviaQA's `normalize_answer`: lower case, no punctuation, no English articles."""
    text = text.lower().translate(_TRIVIA_PUNCTUATION)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def mlqa(text: str, language: str) -> str:
    """MLQA's `normalize_answer`; words, or single Chinese characters, are separated by a space.

    Languages beyond the official seven keep their articles. Regional forms count as their language
    ('zh-CN' as 'zh').
    """
    language = re.split("[-_]", language.lower())[0]
    text = text.lower().translate(_MLQA_REMOVED)
    if language in MLQA_ARTICLES:
        text = re.sub(MLQA_ARTICLES[language], " ", text)
    if language == "zh":
        text = _HAN.sub(r" \1 ", text)
    return " ".join(text.split())


def claim(text: str, language: str) -> list[str]:
    """A claim's words for whole-word containment, not part of any benchmark.

    Compatibility forms are unified; apostrophes, the dots of abbreviations ("U.S." is "us"), Arabic
    vowel marks and English articles are removed. Other punctuation separates words, and each Han
    character is a word. The vowel signs and accents of other scripts are part of their words.
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(r"\b(?:[^\W\d_]\.){2,}", lambda match: match[0].replace(".", ""), text)
    text = _UNWRITTEN.sub("", text)
    text = re.sub(r"(?<=\d)[,.](?=\d)", "", text)
    text = _HAN.sub(r" \1 ", "".join(char if _in_a_word(char) else " " for char in text))
    articles = ("a", "an", "the") if language.startswith("en") else ()
    return [word for word in text.split() if word not in articles]


def _in_a_word(char: str) -> bool:
    """A letter, a number, a mark on either ("के" holds one), or a unit."""
    return char.isalnum() or unicodedata.category(char) in ("Mn", "Mc") or char in "%$€£"


# Parsing the number that an answer gives.


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
    """The number that `text` gives as its answer; null without one.

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
    """The number that `text` consists of, apart from a unit of one word; null for other texts."""
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
    figures, _, exponent = _ascii(match["value"].replace(",", "")).lower().partition("e")
    if "/" in (match["under"] or ""):  # a date
        return None
    under = int(match["under"] or 1)
    if abs(int(exponent or 0)) > _LARGEST_EXPONENT or not under:
        return None
    value = Fraction(figures) * Fraction(10) ** int(exponent or 0) / under
    value += int(match["whole"] or 0)
    return -value if match["sign"] else value


def _ascii(figures: str) -> str:
    return "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in figures)


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


# Where references occur among the words of an answer, and whether they are negated.


_NEGATION_WORDS = (
    "not no never neither nor without false untrue myth incorrect wrong isnt arent wasnt werent "
    "dont doesnt didnt cannot cant wont nicht kein keine nie falsch nunca falso jamás 不 没 非"
)
NEGATIONS = frozenset(_NEGATION_WORDS.split())
_NEGATION_REACH = 3
_AT_EITHER_END = frozenset(
    {"yes", "no", "nothing", "none", "nobody", "nowhere", "never", "unknown", "yeah", "nope"}
)
Span = tuple[int, int]  # first word and the one after the last


def finds(words: Sequence[str], references: Sequence[str], language: str) -> set[Span]:
    """Where references occur in `words`, as (first, end)."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        places.setdefault(word, []).append(place)
    spans = set()
    for reference in references:
        reference_words = claim(reference, language)
        for start in places.get(reference_words[0], ()) if reference_words else ():
            end = start + len(reference_words)
            at_an_end = start == 0 or end == len(words)
            if list(words[start:end]) == reference_words and (
                at_an_end or len(reference_words) > 1 or reference_words[0] not in _AT_EITHER_END
            ):
                spans.add((start, end))
    return spans


def not_inside(spans: set[Span], others: set[Span]) -> list[Span]:
    """Those of `spans` that are in no larger one of `others`."""
    ends: dict[int, int] = {}  # the last of those that start at a word
    for start, end in others:
        ends[start] = max(end, ends.get(start, 0))
    longest = max((end - start for start, end in others), default=0)
    return [
        (first, end)
        for first, end in spans
        if not any(
            ends.get(start, 0) >= end and (start, ends[start]) != (first, end)
            for start in range(end - longest, first + 1)
        )
    ]


def negated_before(words: Sequence[str], span: Span) -> bool:
    """Whether a negation precedes `span` closely; an opening "No, ..." does not count."""
    first = max(0, span[0] - _NEGATION_REACH)
    return any(
        words[place] in NEGATIONS and (place > 0 or words[place] not in ("no", "nein"))
        for place in range(first, span[0])
    )
