"""A format of answers: how to recognise its rows, and how to read and to split them.

Most formats are data, a `Layout` of the table `LAYOUTS`. One that computes is a `Format` in its own
module: a pydantic model of the row, and a function that makes a `RawAnswer`.

`recogniser(marks)` is a function that says whether a row has one of some marks:
``("done", "message{} logprobs[]")`` are alternatives, each of paths that must be there. Behind a
path, ``{}`` asks for an object, ``[]`` for a list, ``:bool`` and ``:text`` for such a value, and
``[{}]`` for a list of objects, in which the rest of the path holds for each.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ValidationError

from tracecal.answers.raw_answer import RawAnswer
from tracecal.errors import WrongRow

Row = dict[str, Any]
Tree = Mapping[str, "Tree"]  # names that are read, each with the names below it
KINDS = {"{}": dict, "[]": list, "[{}]": list, ":bool": bool, ":text": str}
_NAME = re.compile(r"(\w+)(\{\}|\[\{\}\]|\[\]|:bool|:text)?")
Path = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Format:
    """A format of answers that a function reads.

    Attributes
    ----------
    name
        Name for users.
    programs
        Which programs write it, for the page of formats.
    recognises
        Whether a row has this format.
    model
        Schema of the fields to read.
    reader
        Makes an answer of a row; raises `WrongRow`, or pydantic's error for a field.
    alternatives
        Fields to read that the model lacks.
    split
        Makes a row of each answer that a row holds, by the ending of its id: '' for the first
        of several choices, which is the one that `read` reads.
    """

    name: str
    programs: str
    recognises: Callable[[Row], bool]
    model: type[BaseModel]
    reader: Callable[[Row], RawAnswer]
    alternatives: tuple[str, ...] = ()
    split: Callable[[Row], dict[str, Row]] = lambda row: {"": row}

    def read(self, row: Row) -> RawAnswer:
        """Read an answer. Raises `WrongRow`."""
        try:
            return self.reader(row)
        except ValidationError as error:
            raise wrong_field(self.name, error) from error

    @cached_property
    def reads(self) -> Tree:
        """The names that are read."""
        return {name: {} for name in (*self.model.model_fields, *self.alternatives)}


def wrong_field(name: str, error: ValidationError) -> WrongRow:
    """The error of a row that names its first invalid field."""
    first = error.errors()[0]
    path = ".".join(map(str, first["loc"]))
    message = first["msg"].partition("a valid dictionary or instance of ")
    return WrongRow(f"as {name}, {path}: {message[0]}{'an object' if message[1] else ''}")


def recogniser(marks: Sequence[str] | Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether all paths of one of the marks are there; a function is returned unchanged.

    >>> recogniser(["choices.0.message"])({"choices": [{"message": {}}]})
    True
    """
    if callable(marks):
        return marks
    alternatives = [[_NAME.findall(path) for path in mark.split()] for mark in marks]
    return lambda value: any(all(_has(value, path) for path in paths) for paths in alternatives)


def _has(value: Any, path: Path) -> bool:
    for number, (name, kind) in enumerate(path, 1):
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return False
        if kind and not isinstance(value, KINDS[kind]):
            return False
        if kind == "[{}]":
            return all(isinstance(each, dict) and _has(each, path[number:]) for each in value)
    return True


def value_below(value: Any, names: Sequence[str]) -> Any:
    """The value below nested objects; None where there is none.

    >>> value_below({"delta": {"content": "Li"}}, ["delta", "content"])
    'Li'
    """
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
