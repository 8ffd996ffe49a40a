"""What a correctness rule takes and returns: an example, and the verdict on an answer to it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A question and its references, by which an answer is judged."""

    example_id: str
    question: str
    references: Sequence[str]
    distractors: Sequence[str] = ()
    language: str = "en"


@dataclass(frozen=True)
class Verdict:
    """The part of the answer that was judged, and whether it is correct."""

    prediction: str
    correct: bool
