"""What every task of the demo provides, and replies to its questions that train the encoders."""

import hashlib
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from tracecal.errors import InputError

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


# What every task family of the demo data provides: examples to train on and questions.


EXAMPLE_SCHEMA = {
    "example_id": pl.String,
    "group_id": pl.String,
    "role": pl.String,
    "language": pl.String,
    "question": pl.String,
    "context": pl.String,
    "references": pl.List(pl.String),
    "distractors": pl.List(pl.String),
}


@dataclass(frozen=True)
class Sizes:
    """How much of a family to make: corpus examples, question rows of each role, and discussions
    to train encoders on. There are fewer rows where the facts run out."""

    corpus: int
    evaluation: int
    training: int
    discussions: int = 0

    @property
    def share(self) -> float:
        """The share of rows, and of groups, for evaluation."""
        return self.evaluation / (self.evaluation + self.training)

    @property
    def rows(self) -> dict[str, int]:
        """The number of rows by role."""
        return {"evaluation": self.evaluation, "training": self.training}

    def role(self, seed: int, group: str) -> str:
        """The role of a group of questions, the same in every family that asks about it."""
        drawn = int(_digest(str(seed), group), 16) / 16**12
        return "evaluation" if drawn < self.share else "training"


class Exchange(NamedTuple):
    """One example of the corpus: the user's message and the answer to it."""

    prompt: str
    answer: str


@dataclass(frozen=True)
class Question:
    """One row of a task; questions on the same thing share `group`, in all families.

    `facts` are the references of each part of an answer, by the part's name.
    """

    group: str
    role: str
    question: str
    references: list[str]
    distractors: list[str]
    context: str | None = None
    language: str = "en"
    facts: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Family:
    """A task family: the training corpus of the embedded models, the questions, and discussions
    to train encoders on. No discussion is about an evaluated question."""

    corpus: list[Exchange]
    questions: list[Question]
    discussions: list[Discussion]


def example_frame(family: str, questions: list[Question]) -> pl.DataFrame:
    """The questions as task rows; ids hash the question, so they survive any reordering.

    The facts of a family whose questions have them are columns of their own.
    """
    names = dict.fromkeys(name for row in questions for name in row.facts)
    rows = [
        (
            f"{family}-{_digest(row.group, row.language, row.context or '', row.question)}",
            row.group,
            row.role,
            row.language,
            row.question,
            row.context,
            row.references,
            row.distractors,
            *(row.facts[name] for name in names),
        )
        for row in questions
    ]
    facts = dict.fromkeys(names, pl.List(pl.String))
    return pl.DataFrame(rows, schema=EXAMPLE_SCHEMA | facts, orient="row")


def place_group(place: str) -> str:
    """The group of all questions on a country, a state or a city."""
    return f"place-{place.lower().replace(' ', '-')}"


def require_supply(family: str, what: str, needed: int, available: int) -> None:
    """Raise `InputError` where the settings ask for more than a family can make."""
    if needed > available:
        raise InputError(
            f"The demo data's family {family} needs {needed} {what} for the sizes in the config, "
            f"but only {available} exist; choose fewer examples or another corpus size."
        )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]


# Pairs of replies to one question whose relation is known.


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
