"""Pairs of replies to one question, of which the world knows how they relate."""

import random
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl

RELATIONS = ("entailment", "neutral", "contradiction")
# What is one word: a digit and a Chinese character, too
WORD = re.compile(r"\d|[\u4e00-\u9fff]|[^\W\d\u4e00-\u9fff]+")
# How many of the contradictions differ in one word only, as answers of a model often do
MISHEARD_SHARE = 0.5


class Pair(NamedTuple):
    """Two replies to one question, and how the first relates to the second."""

    question: str
    premise: str
    hypothesis: str
    relation: str

    def texts(self) -> tuple[str, str]:
        """What is read: both sides with the question, as semantic entropy has it."""
        return f"{self.question} {self.premise}", f"{self.question} {self.hypothesis}"


class Told(NamedTuple):
    """A reply, and from where to where in it is said what was asked for."""

    text: str
    start: int
    end: int


def reply_pairs(
    discussions: pl.DataFrame, count: int, seed: int, beside: pl.DataFrame | None = None
) -> list[Pair]:
    """`count` pairs on the questions of `discussions`, a third of each relation.

    Replies of one meaning entail each other. Replies of two meanings contradict each other, and so
    do replies of one meaning once a word of what was asked for is another one in either. What is
    said in a sentence on a question of another family says nothing on this one. Such sentences and
    words are those of the discussions `beside`; null: of the same ones.
    """
    rng = random.Random(f"{seed} pairs")
    told = _by_meaning(discussions)
    around = told if beside is None else _by_meaning(beside)
    families = sorted({family for family, _, _ in told})
    others = {family: [one for own, _, one in around if own != family] for family in families}
    words = {family: _words(one for own, _, one in around if own == family) for family in families}
    pairs = []
    for number in range(count):
        family, question, meanings = rng.choice(told)
        relation = RELATIONS[number % 3]
        one, other = rng.choices(rng.choice(meanings), k=2)
        premise, hypothesis = one.text, other.text
        if relation == "neutral":
            beside = rng.choice(rng.choice(others[family]))
            hypothesis = max((reply.text for reply in beside), key=len)
        elif relation == "contradiction":
            if len(meanings) > 1 and rng.random() >= MISHEARD_SHARE:
                premise, hypothesis = (rng.choice(two).text for two in rng.sample(meanings, 2))
            else:
                hypothesis = misheard(rng, other, words[family])
        pairs.append(Pair(question, *rng.sample((premise, hypothesis), 2), relation))
    return pairs


def misheard(rng: random.Random, told: Told, words: Sequence[str]) -> str:
    """The text of `told` with one word of its point replaced by another of the `words`."""
    word = rng.choice(list(WORD.finditer(told.text, told.start, told.end)))
    other = rng.choice([one for one in words if one != word[0]])
    return f"{told.text[: word.start()]}{other}{told.text[word.end() :]}"


def _words(discussed: Iterable[list[list[Told]]]) -> list[str]:
    """The words of the points of all replies."""
    replies = (told for meanings in discussed for one in meanings for told in one)
    return sorted(
        {word for told in replies for word in WORD.findall(told.text[told.start : told.end])}
    )


def _by_meaning(discussions: pl.DataFrame) -> list[tuple[str, str, list[list[Told]]]]:
    """Family, question and the replies by meaning, of each discussion."""
    found: dict[int, tuple[str, str, dict[int, list[Told]]]] = {}
    for row in discussions.iter_rows(named=True):
        start = row["starts"][row["point"]]
        end = [*row["starts"], len(row["reply"])][row["point"] + 1]
        _, _, meanings = found.setdefault(row["discussion"], (row["family"], row["question"], {}))
        meanings.setdefault(row["meaning"], []).append(Told(row["reply"], start, end))
    return [(family, question, list(one.values())) for family, question, one in found.values()]
