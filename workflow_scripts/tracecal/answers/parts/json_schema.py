"""The leaves of a JSON Schema, as paths."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

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
