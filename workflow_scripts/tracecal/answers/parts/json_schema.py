"""The leaves of a JSON Schema, as paths: the parts that it asks for."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

MAX_VALUES = 10_000  # visited, as references may multiply them
MAX_DEPTH = 20  # levels; a schema that refers to itself has no end
CHOICES = ("anyOf", "oneOf", "allOf")


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
