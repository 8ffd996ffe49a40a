"""Texts as benchmarks compare them: TriviaQA's and MLQA's normalisation, and words of claims."""

import re
import string
import sys
import unicodedata

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


def normalise_trivia(text: str) -> str:
    """TriviaQA's ``normalize_answer``: lower case, no punctuation, no English articles."""
    text = text.lower().translate(_TRIVIA_PUNCTUATION)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def normalise_mlqa(text: str, language: str) -> str:
    """MLQA's ``normalize_answer``; words, or single Chinese characters, are separated by a space.

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


def claim_words(text: str, language: str) -> list[str]:
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
