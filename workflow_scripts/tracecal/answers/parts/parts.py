"""The parts of answers that a task file, a command or a JSON Schema states.

`Parts` is the schema of a statement, `read_parts` reads one, and `requested_parts` takes the parts
from the JSON Schema of a request to a server; `schema_leaves` are those of any JSON Schema.
"""

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, field_validator, model_validator

from tracecal.answers.parts.json_document import parse_path
from tracecal.errors import InputError
from tracecal.io.expressions import parsed
from tracecal.io.input_files import read_yaml
from tracecal.io.settings import Strict, parse

# The mark of a list or bold type may stand before the name; possessive, so that no line is read
# twice.
MARKS = " \t>*•-"
LINE = rf"^[{MARKS}]*+(?P<name>[^:*\n]++)\**+:\**+[ \t]*+(?P<value>\S[^\n]*)$"
KINDS = ("json", "lines", "final", "sentences")
MAX_VALUES = 10_000  # of a JSON Schema; references may multiply them
MAX_DEPTH = 20  # levels of it; one that refers to itself has no end
CHOICES = ("anyOf", "oneOf", "allOf")


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
        stated = [bool(kind) for kind in (self.in_json, self.lines, self.final, self.sentences)]
        if stated.count(True) != 1:
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
            parse_path(path)
        return value

    @field_validator("pattern", "final")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value not in (None, LINE):
            parsed(value)
        return value

    @field_validator("pattern")
    @classmethod
    def _has_groups(cls, value: str) -> str:
        if value != LINE and not {"name", "value"} <= parsed(value).groupindex.keys():
            raise ValueError("must hold the groups (?P<name>...) and (?P<value>...)")
        return value

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts; empty for sentences, whose number varies by answer."""
        return self.in_json or self.lines or (("final",) if self.final else ())

    @property
    def pooled(self) -> tuple[str, ...]:
        """The names that one calibrator tells apart; empty unless there are several."""
        return self.names if len(self.names) > 1 else ()


def read_parts(statement: str) -> Parts:
    """Read the parts that a file or a text states: YAML, JSON, or a JSON Schema with its leaves.

    Raises `InputError`.

    >>> read_parts("json: [capital, address.city]").names
    ('capital', 'address.city')
    """
    try:
        is_file = Path(statement).is_file()
    except OSError:  # a text longer than any name
        is_file = False
    try:
        value = read_yaml(statement) if is_file else yaml.safe_load(statement)
    except yaml.YAMLError as error:
        raise InputError(
            f"--parts: {statement[:60]!r} is neither a file nor YAML ({error})."
        ) from error
    source = statement if is_file else "--parts"
    if isinstance(value, dict) and not {*KINDS}.intersection(value):
        try:
            value = {"json": schema_leaves(value)}
        except (ValueError, AttributeError) as error:
            raise InputError(
                f"{source}: {error}; state the parts as one of {', '.join(KINDS)}, such as "
                "'json: [capital, currency]', or give a JSON Schema."
            ) from error
    return parse(Parts, value, source)


def requested_parts(request: Mapping[str, Any]) -> tuple[str, ...]:
    """The leaves of the JSON Schema that a request asks its answer to follow.

    It stands in `response_format`, or in the `text` of Responses. Empty where it is absent or no
    schema.

    >>> schema = {"schema": {"type": "object", "properties": {"capital": {"type": "string"}}}}
    >>> requested_parts({"response_format": {"type": "json_schema", "json_schema": schema}})
    ('capital',)
    """
    text = request.get("text")
    form = text.get("format") if isinstance(text, dict) else request.get("response_format")
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        return ()
    try:
        return Parts(json=schema_leaves(form)).names
    except (AttributeError, TypeError, ValueError):
        return ()


def schema_leaves(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths of a schema's leaves in its order, such as ``address.city`` or ``items[].price``.

    The schema stands alone or as requests hold one. Only references within it are followed. Raises
    `ValueError` where it has no leaf below its root, no end, or more than MAX_VALUES values.

    >>> schema_leaves({"properties": {"a": {}, "b": {"items": {"type": "number"}}}})
    ('a', 'b[]')
    """
    schema = schema.get("schema") or schema.get("json_schema", {}).get("schema") or schema
    paths = dict.fromkeys(path for path in _leaves(schema, schema, "", 0, count()) if path)
    if not paths:
        raise ValueError("the JSON Schema has no 'properties' whose values could be parts")
    return tuple(paths)


def _leaves(
    node: Any, root: Mapping[str, Any], path: str, depth: int, visits: Iterator[int]
) -> Iterator[str]:
    if next(visits) == MAX_VALUES:
        raise ValueError(f"the JSON Schema has more than {MAX_VALUES} values")
    if depth > MAX_DEPTH:
        raise ValueError(f"the JSON Schema nests more than {MAX_DEPTH} levels at {path!r}")
    if not isinstance(node, Mapping):
        return
    if isinstance(reference := node.get("$ref"), str):
        yield from _leaves(_resolve(reference, root), root, path, depth + 1, visits)
        return
    children = [(child, path) for choice in CHOICES for child in node.get(choice) or ()]
    for name, child in (node.get("properties") or {}).items():
        children.append((child, f"{path}.{name}" if path else name))
    if isinstance(node.get("items"), Mapping):
        children.append((node["items"], f"{path}[]"))
    if not children:
        # The alternative 'null' of an optional value is not another part.
        yield path
    for child, child_path in children:
        yield from _leaves(child, root, child_path, depth + 1, visits)


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    """The value that a reference such as '#/$defs/city' points to."""
    node: Any = root
    for key in reference.removeprefix("#").strip("/").split("/"):
        name = key.replace("~1", "/").replace("~0", "~")
        if name:
            node = node.get(name) if isinstance(node, Mapping) else None
    if node is None or not reference.startswith("#"):
        raise ValueError(f"the JSON Schema refers to {reference!r}, which it does not hold")
    return node
