"""What every task family of the world provides: examples to train on and questions."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from tracecal.errors import InputError
from tracecal.world.replies import Discussion

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
            f"The world's family {family} needs {needed} {what} for the sizes in the config, but "
            f"only {available} exist; choose fewer examples or another corpus size."
        )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]
