"""Marks by which rows are recognised, and values below a path.

1. ``("done", "message{} logprobs[]")`` are alternatives, each of paths that must be there.
2. `recogniser(marks)` is a function that says whether one of them holds for a row.

Behind a path, ``{}`` asks for an object, ``[]`` for a list, ``:bool`` and ``:text`` for such a
value, and ``[{}]`` for a list of objects, in which the rest of the path holds for each.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

KINDS = {"{}": dict, "[]": list, "[{}]": list, ":bool": bool, ":text": str}
_NAME = re.compile(r"(\w+)(\{\}|\[\{\}\]|\[\]|:bool|:text)?")
Path = Sequence[tuple[str, str]]


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
