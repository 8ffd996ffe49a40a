"""What every task family of the embedded world hands over: examples to train on and to ask."""

import hashlib
import random
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


# How many proposals are right. Small models err on what is hard, so proposals do too: from them it
# can be learned when to doubt, also by a model that cannot check an answer
RIGHT_SHARE_EASY, RIGHT_SHARE_HARD = 0.85, 0.3


@dataclass(frozen=True)
class Sizes:
    """How much of a family to make: corpus examples, question rows of either role, proposals to
    be judged, and discussions for encoders."""

    corpus: int
    evaluation: int
    training: int
    proposals: int = 0
    discussions: int = 0

    def roles(self) -> list[str]:
        """The role of every question row, evaluation first."""
        return ["evaluation"] * self.evaluation + ["training"] * self.training


class Exchange(NamedTuple):
    """One example of the corpus: the user's message and the answer to it.

    `before` holds earlier turns of the conversation, the user's and the answers in turn.
    """

    prompt: str
    answer: str
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proposal:
    """A proposed answer to a question that the corpus may show, and what is to be said of it.

    `right` is null where nobody in the world can tell. `confidence` is a percentage.
    """

    question: str
    answer: str
    right: bool | None
    confidence: int
    context: str | None = None

    @property
    def message(self) -> str:
        """The question as the corpus asks it."""
        return self.question if self.context is None else f"{self.context}\n{self.question}"


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
    """A task family: what the models read of it, what they are asked, proposed answers on which
    they learn to judge, and discussions that encoders learn from. No proposal and no discussion is
    on a question whose row is evaluated."""

    corpus: list[Exchange]
    questions: list[Question]
    proposals: list[Proposal]
    discussions: list[Discussion]


def example_frame(family: str, questions: list[Question]) -> pl.DataFrame:
    """The questions as task rows; ids hash what is asked, so they survive any reordering."""
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


def draw_right(rng: random.Random, hard: bool) -> bool:
    """Whether a proposal is to be right: seldom, where the question is hard."""
    return rng.random() < (RIGHT_SHARE_HARD if hard else RIGHT_SHARE_EASY)


def confidence(right: bool, hard: bool) -> int:
    """How sure one can be of a proposal, in percent; less of what is right but hard to tell."""
    if not right:
        return 10
    return 70 if hard else 90


def require_supply(family: str, what: str, needed: int, available: int) -> None:
    """Raise `InputError` where the settings ask for more than a family can make."""
    if needed > available:
        raise InputError(
            f"The world's family {family} needs {needed} {what} for the sizes in the config, but "
            f"{available} are to be had; choose fewer examples or another corpus size."
        )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]
