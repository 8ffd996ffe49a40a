"""What an answer is judged against, and the verdict."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """What an answer is judged against."""

    example_id: str
    question: str
    references: Sequence[str]
    distractors: Sequence[str] = ()
    language: str = "en"


@dataclass(frozen=True)
class Verdict:
    """The part of the answer that was judged, and whether it is right."""

    prediction: str
    correct: bool
