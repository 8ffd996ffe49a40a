"""Input files of users: of bounded size, JSON and YAML without repeated keys, tables in Python."""

import json
import re
import runpy
from collections import Counter
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tracecal.errors import InputError
from tracecal.io.regular_files import read_regular, require_regular
from tracecal.io.settings import MOST_VALUES, require_small

MOST_BYTES = 8 * 2**30  # of a file of rows
_BLANK = re.compile(r"\s*")
MOST_SETTINGS = 2**24  # bytes of a file of settings


def parsed_json(text: str | bytes, finite: bool = False) -> Any:
    """The value of JSON text. Raises `ValueError`, also for a repeated key.

    Where it must be `finite`, NaN and Infinity are refused too.

    >>> parsed_json('{"id": "a"}')
    {'id': 'a'}
    """
    constants = _refuse_constant if finite else None
    try:
        return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=constants)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def parsed_json_sequence(text: str) -> list[Any]:
    """The values of JSON texts that follow one another, each over several lines or not.

    Raises `ValueError`, also for a repeated key.

    >>> parsed_json_sequence('{"id": "a"} {"id": "b"}')
    [{'id': 'a'}, {'id': 'b'}]
    """
    decoder = json.JSONDecoder(object_pairs_hook=_without_repeats)
    values, position = [], 0
    try:
        while (position := _BLANK.match(text, position).end()) < len(text):  # type: ignore[union-attr]
            value, position = decoder.raw_decode(text, position)
            values.append(value)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    return values


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"it holds {name}, which is no number")


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file of settings; raise `InputError` where it is missing or unusable."""
    require_regular(path, MOST_SETTINGS)
    try:
        value = yaml.load(read_regular(path, MOST_SETTINGS).decode(), _Loader)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    except InputError:
        raise
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


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {key!r} is given twice")
    return value


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, except that it refuses a repeated key instead of taking the last.

    Merges of merges are counted: a few lines can stand for billions of keys.
    """

    n_keys = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        self.n_keys += len(node.value)
        if self.n_keys > MOST_VALUES:
            problem = f"its merges (<<) stand for more than {MOST_VALUES:,} keys; write them out"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Mapping:
        keys = set()
        # A merge (<<) is no key.
        for key_node in (key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"):
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                continue  # the base class refuses it
            if key in keys:
                problem = f"the key {key!r} is given twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
            keys.add(key)
        return super().construct_mapping(node, deep)


def read_python_table(path: str | Path | None, table: str, expected: str) -> dict[str, Any]:
    """Run a Python file and return the dictionary named `table`; empty without a file."""
    if path is None:
        return {}
    require_regular(path, MOST_SETTINGS)
    try:
        # What is empty is not opened again: it may be a file of the system that has no end.
        declared = read_regular(path, MOST_SETTINGS) and runpy.run_path(str(path)).get(table)
    except (Exception, SystemExit) as error:
        raise InputError(f"{path}: does not run ({type(error).__name__}: {error}).") from error
    if not isinstance(declared, dict) or not declared:
        raise InputError(f"{path}: expected a dict {table} of {expected}.")
    return require_names(declared, path)


def require_names(table: Mapping[Any, Any], source: str | Path) -> dict[str, Any]:
    """Return the table; raise `InputError` where a key is no name, such as ``late_entropy``."""
    for name in table:
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(
                f"{source}: {name!r} is not a valid name; use letters, digits and '_'."
            )
    return dict(table)
