"""A format of answers: how to recognise its rows, which fields they have, and how to read them.

To add a format, write a module beside this one that holds

1. a pydantic model of its rows, with the fields that it reads,
2. a function `read(row)` that makes a `RawAnswer`,
3. `FORMAT = Format(name, recognises, model, read)`,

and add it to `registry`. Where a row holds several answers, `split` makes a row of each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from tracecal.answers.raw_answer import RawAnswer
from tracecal.errors import WrongRow

Row = dict[str, Any]


@dataclass(frozen=True)
class Format:
    """A format of answers.

    Attributes
    ----------
    name
        Name for users.
    recognises
        Whether a row has this format.
    model
        Schema of the fields to read.
    read
        Makes an answer of a row; raises `WrongRow`, or pydantic's error for a field.
    alternatives
        Fields to read that the model lacks.
    split
        Makes a row of each answer that a row holds, by the ending of its id: '' for the first
        of several choices, which is the one that `read` reads.
    """

    name: str
    recognises: Callable[[Row], bool]
    model: type[BaseModel]
    read: Callable[[Row], RawAnswer]
    alternatives: tuple[str, ...] = ()
    split: Callable[[Row], dict[str, Row]] = lambda row: {"": row}

    def wrong_field(self, error: ValidationError) -> WrongRow:
        """The error of a row that names its first invalid field."""
        first = error.errors()[0]
        path = ".".join(map(str, first["loc"]))
        return WrongRow(f"as {self.name}, {path}: {first['msg']}")

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields to read."""
        return (*self.model.model_fields, *self.alternatives)


def split_list(row: Row, name: str) -> dict[str, Row]:
    """The rows with one of the objects of a list of choices each, in the order of their `index`.

    >>> [*split_list({"choices": [{"index": 1}, {"index": 0}]}, "choices")]
    ['', '#choice-2']
    """
    choices = row.get(name)
    if not isinstance(choices, list) or len(choices) < 2:
        return {"": row}
    order = sorted(range(len(choices)), key=lambda index: _index(choices[index], index))
    return {
        f"#choice-{number}" if number > 1 else "": row | {name: [choices[index]]}
        for number, index in enumerate(order, 1)
    }


def _index(choice: Any, default: int) -> int:
    index = choice.get("index") if isinstance(choice, dict) else None
    return index if isinstance(index, int) else default
