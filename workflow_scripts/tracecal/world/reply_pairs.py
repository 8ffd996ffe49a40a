"""Pairs of replies to one question whose relation is known."""

import random
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl

RELATIONS = ("entailment", "neutral", "contradiction")
# One word; a digit and a Chinese character count as one each
WORD = re.compile(r"\d|[\u4e00-\u9fff]|[^\W\d\u4e00-\u9fff]+")
# Share of the contradictions that differ in one word only, as answers of a model often do
MISHEARD_SHARE = 0.5


class Pair(NamedTuple):
    """Two replies to one question, and how the first relates to the second."""

    question: str
    premise: str
    hypothesis: str
    relation: str

    def texts(self) -> tuple[str, str]:
        """Both sides with the question before them, as semantic entropy reads them."""
        return f"{self.question} {self.premise}", f"{self.question} {self.hypothesis}"


class AnswerSpan(NamedTuple):
    """A reply, and where in it the answer starts and ends."""

    text: str
    start: int
    end: int


def reply_pairs(
    discussions: pl.DataFrame, count: int, seed: int, beside: pl.DataFrame | None = None
) -> list[Pair]:
    """`count` pairs on the questions of `discussions`, a third of each relation.

    Replies of one meaning entail each other. Replies of two meanings contradict each other, and so
    do replies of one meaning once a word of the answer is replaced in either. A reply to a question
    of another family is neutral. Such replies and words are taken from the discussions `beside`;
    null: from `discussions`.
    """
    rng = random.Random(f"{seed} pairs")
    own_discussions = _by_meaning(discussions)
    other_discussions = own_discussions if beside is None else _by_meaning(beside)
    families = sorted({family for family, _, _ in own_discussions})
    others = {
        family: [meanings for name, _, meanings in other_discussions if name != family]
        for family in families
    }
    words = {
        family: _words(meanings for name, _, meanings in other_discussions if name == family)
        for family in families
    }
    pairs = []
    for number in range(count):
        family, question, meanings = rng.choice(own_discussions)
        relation = RELATIONS[number % len(RELATIONS)]
        one, other = rng.choices(rng.choice(meanings), k=2)
        premise, hypothesis = one.text, other.text
        if relation == "neutral":
            unrelated = rng.choice(rng.choice(others[family]))
            hypothesis = max((reply.text for reply in unrelated), key=len)
        elif relation == "contradiction":
            if len(meanings) > 1 and rng.random() >= MISHEARD_SHARE:
                premise, hypothesis = (rng.choice(two).text for two in rng.sample(meanings, 2))
            else:
                hypothesis = misheard(rng, other, words[family])
        pairs.append(Pair(question, *rng.sample((premise, hypothesis), 2), relation))
    return pairs


def misheard(rng: random.Random, reply: AnswerSpan, words: Sequence[str]) -> str:
    """The text of `reply` with one word of its answer replaced by another of the `words`."""
    word = rng.choice(list(WORD.finditer(reply.text, reply.start, reply.end)))
    other = rng.choice([text for text in words if text != word[0]])
    return f"{reply.text[: word.start()]}{other}{reply.text[word.end() :]}"


def _words(discussed: Iterable[list[list[AnswerSpan]]]) -> list[str]:
    """The words of the answers in all replies."""
    replies = (reply for meanings in discussed for group in meanings for reply in group)
    return sorted(
        {word for reply in replies for word in WORD.findall(reply.text[reply.start : reply.end])}
    )


def _by_meaning(discussions: pl.DataFrame) -> list[tuple[str, str, list[list[AnswerSpan]]]]:
    """Family, question and the replies by meaning, of each discussion."""
    talks: dict[int, tuple[str, str, dict[int, list[AnswerSpan]]]] = {}
    for row in discussions.iter_rows(named=True):
        start = row["starts"][row["point"]]
        end = [*row["starts"], len(row["reply"])][row["point"] + 1]
        _, _, meanings = talks.setdefault(row["discussion"], (row["family"], row["question"], {}))
        meanings.setdefault(row["meaning"], []).append(AnswerSpan(row["reply"], start, end))
    return [
        (family, question, list(meanings.values())) for family, question, meanings in talks.values()
    ]
