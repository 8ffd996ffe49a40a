"""One kind of stream: how its pieces are recognised and joined.

To add a kind, write a class of `Stream` in the module of its format, and add it to the list of
`event_stream`.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from tracecal.answers.formats.format import Row

STATED_IDS = ("custom_id", "example_id", "id", "doc_id")  # of rows that users write


class Stream(ABC):
    """An answer that arrives in pieces.

    Attributes
    ----------
    fields
        The fields by which a piece is recognised, each with its type.
    answer
        A row of the server's format, as it would be without streaming.
    has_ended
        Whether a piece said that it is the last one.
    """

    fields: ClassVar[tuple[tuple[str, type], ...]]

    def __init__(self) -> None:
        self.answer: Row = {}
        self.has_ended = False

    @classmethod
    def recognises(cls, value: Row) -> bool:
        """Whether an event of a stream is a piece of this kind."""
        return all(isinstance(value.get(name), kind) for name, kind in cls.fields)

    @staticmethod
    def is_piece(value: Row) -> bool:
        """Whether a recognised object outside of a stream is a piece, and no whole answer.

        A row with an id of its own is a whole answer, unless the server gives pieces ids.
        """
        return not any(name in value for name in STATED_IDS)

    def continues(self, piece: Row) -> bool:
        """Whether a piece belongs to this answer, and not to the next one."""
        return not self.has_ended

    @abstractmethod
    def add(self, piece: Row) -> None:
        """Add a piece to the answer."""


def add_text(row: Row, name: str, value: Any) -> None:
    """Append a text to a field.

    >>> row = {"text": "Li"}
    >>> add_text(row, "text", "ma")
    >>> row
    {'text': 'Lima'}
    """
    if isinstance(value, str):
        row[name] = (row.get(name) or "") + value


def add_list(row: Row, name: str, values: Any) -> None:
    """Extend the list of a field."""
    if isinstance(values, list):
        row[name] = [*(row.get(name) or ()), *values]
