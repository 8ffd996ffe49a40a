"""Phrases of an answer, and which phrase each of the language model's tokens belongs to.

A phrase is a stretch of the answer's text: from where it begins to where the next one begins.
Together the phrases hold every character, so no text is ever dropped, and one pass over the answer
aligns them with tokens.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

# Scripts without spaces between words: each character counts as a word.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(f"[{_UNSPACED}]|[^\\s{_UNSPACED}]+")


@dataclass(frozen=True)
class Phrases:
    """Where an answer's phrases begin (ascending character offsets), and how important each is."""

    starts: list[int]
    importance: list[float]


def visible_texts(
    token_ids: Sequence[int], tokens: Sequence[str], special: frozenset[int]
) -> list[str]:
    """The text that each token adds to the answer: none for special tokens."""
    return ["" if token in special else text for token, text in zip(token_ids, tokens, strict=True)]


def word_phrases(text: str) -> Phrases:
    """Every word (in scripts without spaces, every character) as a phrase of equal importance."""
    starts = [match.start() for match in _WORD.finditer(text)]
    return Phrases(starts, [0.0] * len(starts))


def token_phrases(
    texts: Sequence[str], visible: Sequence[bool], phrases: Phrases
) -> tuple[list[int | None], list[float]]:
    """The phrase of each token, and the importance of each phrase.

    `texts` are what the tokens add to the answer; tokens that are not `visible` add nothing and
    have the phrase null. A token belongs to the phrase of its first character that is not a space;
    a token of spaces only, or of part of a character, to the phrase of what follows it. Phrases in
    which no token begins are merged into the one before, and their importances averaged.
    """
    phrase_of_token: list[int | None] = []
    place = started = 0  # characters passed; phrases that begin at `place` or before
    for text, seen in zip(texts, visible, strict=True):
        spaces = len(text) - len(text.lstrip())
        while started < len(phrases.starts) and phrases.starts[started] <= place + spaces:
            started += 1
        phrase_of_token.append(max(started - 1, 0) if seen else None)
        place += len(text)
    return _merged(phrase_of_token, phrases.importance)


def _merged(
    phrase_of_token: list[int | None], importance: list[float]
) -> tuple[list[int | None], list[float]]:
    """Phrases renumbered without gaps: one without a token joins the one before (or after)."""
    used = sorted({phrase for phrase in phrase_of_token if phrase is not None})
    if not used:
        return phrase_of_token, []
    number = {phrase: index for index, phrase in enumerate(used)}
    ends = [*used[1:], max(len(importance), used[-1] + 1)]
    begins = [0, *used[1:]]
    means = [
        sum(members) / len(members) if (members := importance[begin:end]) else 0.0
        for begin, end in zip(begins, ends, strict=True)
    ]
    return [None if phrase is None else number[phrase] for phrase in phrase_of_token], means
