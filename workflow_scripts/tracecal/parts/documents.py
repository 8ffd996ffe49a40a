"""The places of the values of a JSON document within a text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from json.decoder import scanstring

DEEPEST = 100  # levels; a document within more is not read
_SPACE = re.compile(r"[ \t\n\r]*+")
_LITERAL = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)\b")
_OPENING = re.compile(r"[{\[]")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d*)\]")

Step = str | int | None  # a key, an index, or every element
Path = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a document: its characters [start, end) in the text and, of a string, its value.

    A string's characters are those between its quotes, or both quotes where it is empty.
    """

    start: int
    end: int
    text: str
    members: "dict[str, Node] | list[Node] | None" = None


def steps(path: str) -> Path:
    """The steps of a path such as `address.city`, `items[0].price` or `items[].price`.

    Raises `ValueError` where it is not one.
    """
    found: list[Step] = []
    place = 0
    while match := _STEP.match(path, place):
        key, index = match.groups()
        found.append(key if key is not None else int(index) if index else None)
        place = match.end()
        if path[place : place + 1] == ".":
            place += 1
            if place == len(path) or path[place] == "[":
                break
    if not found or place < len(path) or path.endswith("."):
        raise ValueError(
            f"{path!r} is not a path; write keys and indices, as address.city or items[0].price"
        )
    return tuple(found)


def documents(text: str) -> Iterator[Node]:
    """The JSON objects and arrays in a text, from left to right; none is within another.

    What is open where a document breaks off breaks off there too, so none of it is read again: the
    time is in proportion to the text.
    """
    place, broken = 0, set()
    while opening := _OPENING.search(text, place):
        place, within = opening.end(), []
        if opening.start() in broken:
            continue
        try:
            node, place = _value(text, opening.start(), within)
        except ValueError:
            broken.update(within)
        else:
            yield node


def found(node: Node, path: Path, name: str = "") -> Iterator[tuple[str, Node]]:
    """The values at a path below `node`, each with its own path: with its index where the path
    asks for every element.
    """
    if not path:
        yield name, node
        return
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        if isinstance(node.members, dict) and step in node.members:
            yield from found(node.members[step], rest, f"{name}.{step}" if name else step)
    elif isinstance(node.members, list):
        for index, member in enumerate(node.members):
            if step is None or step == index:
                yield from found(member, rest, f"{name}[{index}]")


def _value(text: str, place: int, within: list[int]) -> tuple[Node, int]:
    """The value that starts at `place`, and the place behind it; `ValueError` where none does.

    `within` are the starts of the objects and arrays that it is in, and after an error of all that
    were open there.
    """
    first = text[place : place + 1]
    if first == '"':
        value, end = scanstring(text, place + 1, True)
        inner = end - place > 2
        return Node(place + inner, end - inner, value), end
    if first == "{" or first == "[":
        if len(within) == DEEPEST:
            raise ValueError("nested too deep")
        within.append(place)
        read = (_object if first == "{" else _array)(text, place, within)
        within.pop()
        return read
    if literal := _LITERAL.match(text, place):
        return Node(place, literal.end(), literal[0]), literal.end()
    raise ValueError("no value")


def _object(text: str, start: int, within: list[int]) -> tuple[Node, int]:
    members: dict[str, Node] = {}
    place = _after_space(text, start + 1)
    while text[place : place + 1] != "}":
        if members:
            place = _after(text, place, ",")
        if text[place : place + 1] != '"':
            raise ValueError("no key")
        key, place = scanstring(text, place + 1, True)
        place = _after(text, _after_space(text, place), ":")
        members[key], place = _value(text, place, within)
        place = _after_space(text, place)
    return Node(start, place + 1, text[start : place + 1], members), place + 1


def _array(text: str, start: int, within: list[int]) -> tuple[Node, int]:
    members: list[Node] = []
    place = _after_space(text, start + 1)
    while text[place : place + 1] != "]":
        if members:
            place = _after(text, place, ",")
        node, place = _value(text, place, within)
        members.append(node)
        place = _after_space(text, place)
    return Node(start, place + 1, text[start : place + 1], members), place + 1


def _after(text: str, place: int, mark: str) -> int:
    if text[place : place + 1] != mark:
        raise ValueError(f"no {mark!r}")
    return _after_space(text, place + 1)


def _after_space(text: str, place: int) -> int:
    return _SPACE.match(text, place).end()
