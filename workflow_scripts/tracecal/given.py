"""Reading what people give: files of bounded size, JSON and YAML without surprises."""

import json
import stat
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tracecal.errors import InputError, here

MOST_BYTES = 8 * 2**30  # of a file of rows
MOST_SETTINGS = 2**24  # bytes of a file of settings, and values it may stand for


def given_bytes(path: str | Path, most: int) -> bytes:
    """The bytes of a regular file that is no larger than `most`; raises `InputError`."""
    require_regular(path, most)
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error


def require_regular(path: str | Path, most: int) -> None:
    """Raise `InputError` unless `path` is a file, not a device or pipe, of at most `most` bytes."""
    try:
        found = Path(path).stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read{here(path)}: {error.strerror}.") from error
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path} is not a file; give one (no folder, pipe or device).")
    if found.st_size > most:
        raise InputError(f"{path} holds {found.st_size:,} bytes; {most:,} are the most.")


def parsed_json(text: str | bytes) -> Any:
    """The value that JSON text holds; raises `ValueError`, for a key that is given twice too."""
    try:
        return json.loads(text, object_pairs_hook=_distinct)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file of settings; raise `InputError` where it is missing or not usable YAML."""
    content = given_bytes(path, MOST_SETTINGS)
    try:
        value = yaml.load(content.decode(), _Loader)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise InputError(_not_yaml(path, error)) from error
    except RecursionError:
        raise InputError(f"{path} is not usable YAML: it is nested too deep.") from None
    require_small(value, str(path))
    return value


def _not_yaml(path: str | Path, error: Exception) -> str:
    """Where a YAML file cannot be read, and why."""
    if mark := getattr(error, "problem_mark", None):
        begun = f" from line {error.context_mark.line + 1}" if error.context_mark else ""
        context = f"{error.context}{begun}: " if error.context else ""
        where = f"{path}, line {mark.line + 1}, column {mark.column + 1}"
        return f"{where}: not YAML ({context}{error.problem})."
    return f"{path}: not YAML ({' '.join(str(error).split())})."


def require_small(value: Any, where: str) -> None:
    """Raise `InputError` where settings stand for more values than anyone means.

    YAML's aliases let a few lines stand for billions.
    """
    try:
        size = _size(value, {})
    except RecursionError:
        raise InputError(f"{where}: it contains itself, or is nested too deep.") from None
    if size > MOST_SETTINGS:
        raise InputError(f"{where}: its aliases stand for {size:,} values; write them out.")


def _size(value: Any, known: dict[int, int]) -> int:
    """How many values it is written out; each part is counted once, however often it is named."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        parts = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(value)]


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"the key {_twice([key for key, _ in pairs])!r} is given twice")
    return found


def _twice(keys: list[Hashable]) -> Hashable:
    return next(key for place, key in enumerate(keys) if key in keys[:place])


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, which would take the last of two equal keys without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Mapping:
        # A merge (<<) names no key of its own.
        own = [key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        keys = [self.construct_object(key, deep=True) for key in own]
        named = [key for key in keys if isinstance(key, Hashable)]
        if len(set(named)) < len(named):
            second = next(key for place, key in enumerate(own) if keys[place] in keys[:place])
            problem = f"the key {_twice(named)!r} is given twice"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=second.start_mark)
        return super().construct_mapping(node, deep)
