"""JSON documents in a text, with the place of each value.

`find_documents(text)` yields the documents, `nodes_at(node, path)` the values at a path.
"""

import re
from collections.abc import Iterator
from json.decoder import scanstring
from typing import NamedTuple

MAX_DEPTH = 100  # levels; a document within more is not read
# The grammar of RFC 8259. One match reads a member or element with the mark behind it; of an object
# or array it reads only what stands before. Possessive, so that nothing is read twice.
_SPACE = r"[ \t\n\r]*+"
_PLAIN = r'[^"\\\x00-\x1f]*+'
_STRING = rf'"({_PLAIN}(?:\\.{_PLAIN})*+)"'  # `_unescape` refuses invalid escapes
_LITERAL = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+|true|false|null"
_MARK = rf"{_SPACE}([,}}\]])"
_VALUE = rf"{_SPACE}(?:(?:{_STRING}|({_LITERAL})){_MARK}|(?=[{{\[]))"
_read_member = re.compile(rf"{_SPACE}{_STRING}{_SPACE}:{_VALUE}").match
_read_element = re.compile(rf"(){_VALUE}").match
_read_mark = re.compile(_MARK).match
_read_end = re.compile(rf"{_SPACE}([}}\]])").match
_OPENING = re.compile(r"[{\[]")
_KEY_OR_INDEX = re.compile(r"([^.\[\]]+)|\[(\d*)\]")
Key = str | int | None  # a name, an index, or every element
Keys = tuple[Key, ...]


class Node(NamedTuple):
    """A value of a document: its characters [start, end) in the text and, of a string, its value.

    The characters of a string are those between its quotes, or both quotes where it is empty.
    """

    start: int
    end: int
    text: str
    members: "dict[str, Node] | list[Node] | None" = None


def parse_path(path: str) -> Keys:
    """The keys of a path such as ``address.city``, `items[0].price` or `items[].price`.

    Raises `ValueError` where it is no path.

    >>> parse_path("items[].price")
    ('items', None, 'price')
    """
    keys: list[Key] = []
    position = 0
    while match := _KEY_OR_INDEX.match(path, position):
        name, index = match.groups()
        keys.append(name if name is not None else int(index) if index else None)
        position = match.end()
        if path[position : position + 1] == ".":
            position += 1
            if position == len(path) or path[position] == "[":
                break
    if not keys or position < len(path) or path.endswith("."):
        raise ValueError(
            f"{path!r} is not a path; write keys and indices, as address.city or items[0].price"
        )
    return tuple(keys)


def find_documents(text: str) -> Iterator[Node]:
    """The JSON objects and arrays in a text, from left to right; none is within another.

    What is open where a document breaks off breaks off there too, so none of it is read again: the
    time is in proportion to the text.

    >>> [document.text for document in find_documents('It is {"capital": "Lima"}.')]
    ['{"capital": "Lima"}']
    """
    position, broken = 0, set()
    while opening := _OPENING.search(text, position):
        position, open_starts = opening.end(), []
        if opening.start() in broken:
            continue
        try:
            node = _read(text, opening.start(), open_starts)
        except ValueError:
            broken.update(open_starts)
        else:
            yield node
            position = node.end


def nodes_at(node: Node, keys: Keys) -> list[tuple[str, Node]]:
    """The values at a path below `node`, each with its own path.

    The path has an index where `keys` ask for every element.
    """
    reached = [("", node)]
    for key in keys:
        parents, reached = reached, []
        for name, (*_, members) in parents:
            if isinstance(members, dict):
                if key in members:
                    reached.append((f"{name}.{key}" if name else key, members[key]))
            elif members and not isinstance(key, str):
                reached += [
                    (f"{name}[{index}]", member)
                    for index, member in enumerate(members)
                    if key is None or key == index
                ]
    return reached


def _read(text: str, start: int, open_starts: list[int]) -> Node:
    """The object or array that starts at `start`; `ValueError` where it breaks off.

    `open_starts` are the starts of the objects and arrays around it, and after an error of all that
    were open there.
    """
    if len(open_starts) == MAX_DEPTH:
        raise ValueError("nested too deep")
    open_starts.append(start)
    members: dict[str, Node] | list[Node] = {} if text[start] == "{" else []
    read_member, closing = (_read_member, "}") if text[start] == "{" else (_read_element, "]")
    position, mark = start + 1, ","
    if empty := _read_end(text, position):
        position, mark = empty.end(), empty[1]
    while mark == ",":
        if not (match := read_member(text, position)):
            raise ValueError("no member or element")
        key, string, literal, mark = match.groups()
        position = match.end()
        if string:
            node = Node(*match.span(2), _unescape(string))
        elif string is not None:
            node = Node(match.start(2) - 1, match.end(2) + 1, "")
        elif literal:
            node = Node(*match.span(3), literal)
        else:
            node = _read(text, position, open_starts)
            behind = _read_mark(text, node.end)
            position, mark = (behind.end(), behind[1]) if behind else (node.end, None)
        if isinstance(members, dict):
            members[_unescape(key)] = node
        else:
            members.append(node)
    if mark != closing:
        raise ValueError(f"no {closing!r}")
    open_starts.pop()
    return Node(start, position, text[start:position], members)


def _unescape(string: str) -> str:
    """The text of a string; `ValueError` where an escape is invalid."""
    return scanstring(string + '"', 0)[0] if "\\" in string else string
