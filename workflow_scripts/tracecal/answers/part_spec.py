"""Which parts an answer has: stated by a task file, a command or a JSON Schema."""

import re
from collections.abc import Iterator, Mapping
from itertools import count
from json.decoder import scanstring
from typing import Any, Literal, NamedTuple

from pydantic import Field, field_validator, model_validator

from tracecal.io.input_files import compiled
from tracecal.io.settings import Strict

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


# Which parts an answer has, as a task file or a command states it.


# A list's mark or bold type may stand before the name; possessive, so that no line is read twice.
MARKS = " \t>*•-"
LINE = rf"^[{MARKS}]*+(?P<name>[^:*\n]++)\**+:\**+[ \t]*+(?P<value>\S[^\n]*)$"
KINDS = ("json", "lines", "final", "sentences")


class Parts(Strict):
    """The parts of each answer: exactly one of `json`, `lines`, `final` and `sentences`."""

    in_json: tuple[str, ...] = Field(
        (), alias="json", description="paths of a JSON answer's values, as address.city"
    )
    lines: tuple[str, ...] = Field((), description="names of lines, as capital in 'Capital: Lima'")
    pattern: str = Field(
        LINE, description="of `lines`: a regular expression with the groups 'name' and 'value'"
    )
    final: str | None = Field(
        None,
        description="regular expression; the part is what follows its last match, or the group "
        "'value' of that match",
    )
    sentences: bool = Field(False, description="each sentence is a part; of answers from files")
    reasoning: Literal["apart", "alone", "within"] = Field(
        "apart",
        description="of `final`: the trace is of the conclusion (apart), of the reasoning before "
        "it (alone) or of both (within)",
    )
    missing: Literal["unanswered", "wrong"] = Field(
        "unanswered",
        description="a part that an answer lacks is left out and counted, or counts as wrong",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> "Parts":
        given = [bool(kind) for kind in (self.in_json, self.lines, self.final, self.sentences)]
        if given.count(True) != 1:
            raise ValueError(f"give exactly one of {', '.join(map(repr, KINDS))}")
        if self.reasoning != "apart" and not self.final:
            raise ValueError("'reasoning' stands before a conclusion: it belongs to 'final'")
        if len({*self.names}) < len(self.names):
            raise ValueError("names a part twice")
        return self

    @field_validator("in_json")
    @classmethod
    def _paths(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for path in value:
            steps(path)
        return value

    @field_validator("pattern", "final")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value not in (None, LINE):
            compiled(value)
        return value

    @field_validator("pattern")
    @classmethod
    def _has_groups(cls, value: str) -> str:
        if value != LINE and not {"name", "value"} <= compiled(value).groupindex.keys():
            raise ValueError("must hold the groups (?P<name>...) and (?P<value>...)")
        return value

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts; none for sentences, of which each answer has its own number."""
        return self.in_json or self.lines or (("final",) if self.final else ())

    @property
    def pooled(self) -> tuple[str, ...]:
        """The names that one calibrator tells apart; none where there are not several."""
        return self.names if len(self.names) > 1 else ()


# The parts that a JSON Schema asks for: its leaves, as paths.


MOST = 10_000  # values that are looked at, as references may multiply them
DEEPEST_SCHEMA = 20  # levels; a schema that refers to itself has no end
CHOICES = ("anyOf", "oneOf", "allOf")


def leaves(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths of a schema's leaves, in its order, such as `address.city` or `items[].price`.

    Only references within the schema are followed. Raises `ValueError` where it has no leaf below
    its root, no end, or more than MOST values.

    >>> leaves({"properties": {"a": {"type": "string"}, "b": {"items": {"type": "number"}}}})
    ('a', 'b[]')
    """
    found = tuple(dict.fromkeys(path for path in _leaves(schema, schema, "", 0, count()) if path))
    if not found:
        raise ValueError("the JSON Schema has no 'properties' whose values could be parts")
    return found


def _leaves(
    node: Any, root: Mapping[str, Any], path: str, depth: int, seen: Iterator[int]
) -> Iterator[str]:
    if next(seen) == MOST:
        raise ValueError(f"the JSON Schema has more than {MOST} values")
    if depth > DEEPEST_SCHEMA:
        raise ValueError(f"the JSON Schema nests more than {DEEPEST_SCHEMA} levels at {path!r}")
    if not isinstance(node, Mapping):
        return
    if isinstance(reference := node.get("$ref"), str):
        yield from _leaves(_referred(reference, root), root, path, depth + 1, seen)
        return
    inner = [(one, path) for key in CHOICES for one in node.get(key) or ()]
    for name, one in (node.get("properties") or {}).items():
        inner.append((one, f"{path}.{name}" if path else name))
    if isinstance(node.get("items"), Mapping):
        inner.append((node["items"], f"{path}[]"))
    if not inner:
        # Of an optional value, the alternative 'null' is not another part.
        yield path
    for one, below in inner:
        yield from _leaves(one, root, below, depth + 1, seen)


def _referred(reference: str, root: Mapping[str, Any]) -> Any:
    node: Any = root
    for key in reference.removeprefix("#").strip("/").split("/"):
        name = key.replace("~1", "/").replace("~0", "~")
        if name:
            node = node.get(name) if isinstance(node, Mapping) else None
    if node is None or not reference.startswith("#"):
        raise ValueError(f"the JSON Schema refers to {reference!r}, which it does not hold")
    return node
