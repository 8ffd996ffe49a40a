"""Replies to questions, phrase by phrase, from which the world's encoders learn.

The families build their replies, so they know where each phrase begins, which one holds the
answer, and which replies mean the same. No reply is to an evaluated question, and nothing here says
which replies are right.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

DISCUSSION_SCHEMA = {
    "discussion": pl.Int64,
    "family": pl.String,
    "question": pl.String,
    "meaning": pl.Int64,
    "reply": pl.String,
    "starts": pl.List(pl.Int64),
    "point": pl.Int64,
}


class Reply(NamedTuple):
    """A text, the characters at which its phrases begin, and the number of the phrase (from 0)
    that holds the answer."""

    text: str
    starts: tuple[int, ...]
    point: int


@dataclass(frozen=True)
class Discussion:
    """Replies to one question, grouped by meaning; replies of two groups contradict each other."""

    question: str
    meanings: tuple[tuple[Reply, ...], ...]


def phrased(template: str, point: str, **words: str) -> Reply:
    """`template` filled with `words`: each of them is a phrase, and so is the text between them.

    `point` names the word that is the answer. A final stop belongs to the phrase before it.
    """
    text, starts, answer = "", [], 0
    for piece in re.split(r"(\{\w\}[.。]?)", template):
        if piece.strip():
            answer = len(starts) if piece.startswith(f"{{{point}}}") else answer
            starts.append(len(text) + len(piece) - len(piece.lstrip()))
        text += piece.format(**words)
    return Reply(text, tuple(starts), answer)


def word_by_word(text: str) -> Reply:
    """Every word of `text` is a phrase, and the last one is the answer."""
    starts = tuple(match.start() for match in re.finditer(r"\S+", text))
    return Reply(text, starts, len(starts) - 1)


def discussion_frame(discussions: Sequence[tuple[str, Discussion]]) -> pl.DataFrame:
    """One row per reply of each (family, discussion)."""
    rows = [
        (number, family, discussion.question, meaning, reply.text, list(reply.starts), reply.point)
        for number, (family, discussion) in enumerate(discussions)
        for meaning, replies in enumerate(discussion.meanings)
        for reply in replies
    ]
    return pl.DataFrame(rows, schema=DISCUSSION_SCHEMA, orient="row")
