"""What users give: files, of bounded size, JSON and YAML without repeated keys, and expressions."""

import json
import runpy
import stat
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cache
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

import yaml

from tracecal.errors import InputError, here

if TYPE_CHECKING:  # slow to load, and not needed at import
    import regex

MOST_BYTES = 8 * 2**30  # of a file of rows
MOST_SETTINGS = 2**24  # bytes of a file of settings, and values in it with aliases expanded


def require_regular(path: str | Path, most: int) -> None:
    """Raise `InputError` unless `path` is a file, not a device or pipe, of at most `most` bytes."""
    try:
        status = Path(path).stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read{here(path)}: {error.strerror}.") from error
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is not a file; give one (no folder, pipe or device).")
    if status.st_size > most:
        raise InputError(f"{path} holds {status.st_size:,} bytes; at most {most:,} are allowed.")


def parsed_json(text: str | bytes) -> Any:
    """The value of JSON text; raises `ValueError`, also for a repeated key."""
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file of settings; raise `InputError` where it is missing or unusable."""
    require_regular(path, MOST_SETTINGS)
    try:
        value = yaml.load(Path(path).read_bytes().decode(), _Loader)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(_not_yaml(path, error)) from error
    except RecursionError:
        raise InputError(f"{path} is not usable YAML: it is nested too deep.") from None
    require_small(value, str(path))
    return value


def _not_yaml(path: str | Path, error: Exception) -> str:
    """A sentence on where and why a YAML file cannot be parsed."""
    if mark := getattr(error, "problem_mark", None):
        begun = f" from line {error.context_mark.line + 1}" if error.context_mark else ""
        context = f"{error.context}{begun}: " if error.context else ""
        where = f"{path}, line {mark.line + 1}, column {mark.column + 1}"
        return f"{where}: not YAML ({context}{error.problem})."
    return f"{path}: not YAML ({' '.join(str(error).split())})."


def require_small(value: Any, where: str) -> None:
    """Raise `InputError` for too many values: by aliases, few lines of YAML can hold billions."""
    try:
        size = _size(value, {})
    except RecursionError:
        raise InputError(f"{where}: it contains itself, or is nested too deep.") from None
    if size > MOST_SETTINGS:
        raise InputError(f"{where}: its aliases stand for {size:,} values; write them out.")


def _size(value: Any, known: dict[int, int]) -> int:
    """Number of values with aliases expanded; `known` holds the sizes of the parts by id."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        parts = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(value)]


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {key!r} is given twice")
    return value


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, which without this would silently take the last of two equal keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Mapping:
        seen = set()
        # A merge (<<) is not a key of its own.
        for key_node in (key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"):
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                continue  # the base class refuses it
            if key in seen:
                problem = f"the key {key!r} is given twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def declared_in(path: str | Path | None, table: str, expected: str) -> dict[str, Any]:
    """The dict named `table` that a file of Python defines; empty without a file."""
    if path is None:
        return {}
    require_regular(path, MOST_SETTINGS)
    try:
        declared = runpy.run_path(str(path)).get(table)
    except Exception as error:
        raise InputError(f"{path}: does not run ({type(error).__name__}: {error}).") from error
    if not isinstance(declared, dict) or not declared:
        raise InputError(f"{path}: expected a dict {table} of {expected}.")
    return with_names(declared, path)


def with_names(declared: Mapping[Any, Any], where: str | Path) -> dict[str, Any]:
    """The same; raises `InputError` where a key is no name, such as `late_entropy`."""
    for name in declared:
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"{where}: {name!r} is not a valid name; use letters, digits and '_'.")
    return dict(declared)


# Regular expressions that users state and a model's text meets: they may take only so long. The
# package `regex` reads what Python's `re` reads and can be told when to stop: an expression such as
# `(a|a)*b` would else run for ever on a few dozen letters.

PATIENCE = 1.0  # CPU seconds of an expression on one answer


@cache
def compiled(expression: str, dotall: bool = False) -> "regex.Pattern[str]":
    """The expression. Raises `ValueError` where it is none."""
    import regex

    try:
        return regex.compile(expression, regex.DOTALL if dotall else 0)
    except regex.error as error:
        raise ValueError(f"is not a regular expression ({error})") from error


def matches(expression: str, text: str, dotall: bool = False) -> "Iterator[regex.Match[str]]":
    """All matches in a text, from left to right. Raises `InputError` where it takes too long."""
    try:
        yield from compiled(expression, dotall).finditer(text, timeout=PATIENCE)
    except TimeoutError:
        raise _endless(expression, text) from None


def searcher(expression: str, text: str) -> "Callable[[str], regex.Match[str] | None]":
    """Finds the first match in a line of `text`; of all its lines it raises as `matches`."""
    search, end = compiled(expression).search, process_time() + PATIENCE

    def found(line: str) -> "regex.Match[str] | None":
        try:
            return search(line, timeout=max(end - process_time(), 0))
        except TimeoutError:
            raise _endless(expression, text) from None

    return found


def _endless(expression: str, text: str) -> InputError:
    return InputError(
        f"the regular expression {expression!r} takes over {PATIENCE:g} s for the answer that "
        f"begins {text[:60]!r}: write it so that no two of its repetitions can match the same text."
    )
