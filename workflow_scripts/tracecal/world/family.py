"""What every task family of the world provides: examples to train on and questions."""

import hashlib
from dataclasses import dataclass
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

    def evaluated(self, groups: int) -> int:
        """How many of `groups` are for evaluation: the same share as of the rows."""
        return round(groups * self.evaluation / (self.evaluation + self.training))


class Exchange(NamedTuple):
    """One example of the corpus: the user's message and the answer to it."""

    prompt: str
    answer: str


@dataclass(frozen=True)
class Question:
    """One row of a task; variants and translations of one question share `group`."""

    group: str
    role: str
    question: str
    references: list[str]
    distractors: list[str]
    context: str | None = None
    language: str = "en"


@dataclass(frozen=True)
class Family:
    """A task family: the training corpus of the embedded models, the questions, and discussions
    to train encoders on. No discussion is about an evaluated question."""

    corpus: list[Exchange]
    questions: list[Question]
    discussions: list[Discussion]


def example_frame(family: str, questions: list[Question]) -> pl.DataFrame:
    """The questions as task rows; ids hash the question, so they survive any reordering."""
    rows = [
        (
            f"{family}-{_digest(row.group, row.language, row.context or '', row.question)}",
            f"{family}-{row.group}",
            row.role,
            row.language,
            row.question,
            row.context,
            row.references,
            row.distractors,
        )
        for row in questions
    ]
    return pl.DataFrame(rows, schema=EXAMPLE_SCHEMA, orient="row")


def require_supply(family: str, what: str, needed: int, available: int) -> None:
    """Raise `InputError` where the settings ask for more than a family can make."""
    if needed > available:
        raise InputError(
            f"The world's family {family} needs {needed} {what} for the sizes in the config, but "
            f"only {available} exist; choose fewer examples or another corpus size."
        )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]
