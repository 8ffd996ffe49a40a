"""JSON documents in a text, with the place of each value."""

import re
from collections.abc import Iterator
from json.decoder import scanstring
from typing import NamedTuple

DEEPEST = 100  # levels; a document within more is not read
# The grammar of RFC 8259. One match reads a member or element, with the mark behind it; of one that
# is an object or array only what stands before that. Possessive, so that nothing is read twice.
_SPACE = r"[ \t\n\r]*+"
_PLAIN = r'[^"\\\x00-\x1f]*+'
_STRING = rf'"({_PLAIN}(?:\\.{_PLAIN})*+)"'  # `_unescaped` refuses an escape that is none
_LITERAL = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+|true|false|null"
_MARK = rf"{_SPACE}([,}}\]])"
_VALUE = rf"{_SPACE}(?:(?:{_STRING}|({_LITERAL})){_MARK}|(?=[{{\[]))"
_read_member = re.compile(rf"{_SPACE}{_STRING}{_SPACE}:{_VALUE}").match
_read_element = re.compile(rf"(){_VALUE}").match
_read_mark = re.compile(_MARK).match
_read_end = re.compile(rf"{_SPACE}([}}\]])").match
_OPENING = re.compile(r"[{\[]")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d*)\]")
Step = str | int | None  # a key, an index, or every element
Path = tuple[Step, ...]


class Node(NamedTuple):
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
            node = _read(text, opening.start(), within)
        except ValueError:
            broken.update(within)
        else:
            yield node
            place = node.end


def found(node: Node, path: Path) -> list[tuple[str, Node]]:
    """The values at a path below `node`, each with its own path: with its index where the path
    asks for every element.
    """
    reached = [("", node)]
    for step in path:
        above, reached = reached, []
        for name, (*_, members) in above:
            if isinstance(members, dict):
                if step in members:
                    reached.append((f"{name}.{step}" if name else step, members[step]))
            elif members and not isinstance(step, str):
                reached += [
                    (f"{name}[{index}]", member)
                    for index, member in enumerate(members)
                    if step is None or step == index
                ]
    return reached


def _read(text: str, start: int, within: list[int]) -> Node:
    """The object or array that starts at `start`; `ValueError` where it breaks off.

    `within` are the starts of the objects and arrays that it is in, and after an error of all that
    were open there.
    """
    if len(within) == DEEPEST:
        raise ValueError("nested too deep")
    within.append(start)
    members: dict[str, Node] | list[Node] = {} if text[start] == "{" else []
    read_one, closing = (_read_member, "}") if text[start] == "{" else (_read_element, "]")
    place, mark = start + 1, ","
    if empty := _read_end(text, place):
        place, mark = empty.end(), empty[1]
    while mark == ",":
        if not (match := read_one(text, place)):
            raise ValueError("no member or element")
        key, string, literal, mark = match.groups()
        place = match.end()
        if string:
            node = Node(*match.span(2), _unescaped(string))
        elif string is not None:
            node = Node(match.start(2) - 1, match.end(2) + 1, "")
        elif literal:
            node = Node(*match.span(3), literal)
        else:
            node = _read(text, place, within)
            behind = _read_mark(text, node.end)
            place, mark = (behind.end(), behind[1]) if behind else (node.end, None)
        if isinstance(members, dict):
            members[_unescaped(key)] = node
        else:
            members.append(node)
    if mark != closing:
        raise ValueError(f"no {closing!r}")
    within.pop()
    return Node(start, place, text[start:place], members)


def _unescaped(string: str) -> str:
    """What a string says; `ValueError` where an escape is none."""
    return scanstring(string + '"', 0)[0] if "\\" in string else string
