"""Custom correctness rules, and reading the Python files of these and of custom estimators
(docs/own.md).
"""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tracecal.errors import InputError
from tracecal.given import MOST_SETTINGS, require_regular
from tracecal.provenance import code_hash


def own_rules(path: str | None) -> dict[str, Callable]:
    """The correctness rules of a file by name; none without a file.

    Each takes the extracted answer and an `Example`, and returns whether the answer is right.
    Raises `InputError` where the file does not run or a rule is not a function.
    """
    declared = declared_in(path, "RULES", "name: a function of the answer and the example")
    if wrong := [name for name, rule in declared.items() if not callable(rule)]:
        raise InputError(f"{path}: the rule {wrong[0]!r} is not a function; give one.")
    return declared


def declared_in(path: str | None, table: str, expected: str) -> dict[str, Any]:
    """The dict named `table` that a file defines; empty without a file."""
    if path is None:
        return {}
    require_regular(path, MOST_SETTINGS)
    try:
        declared = runpy.run_path(path).get(table)
    except Exception as error:
        raise InputError(f"{path}: does not run ({type(error).__name__}: {error}).") from error
    if not isinstance(declared, dict) or not declared:
        raise InputError(f"{path}: expected a dict {table} of {expected}.")
    for name in declared:
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"{path}: {name!r} is no name; use letters, digits and '_'.")
    return declared


def own_code(path: str) -> str:
    """Hash of a custom file's code and of what it imports from the package."""
    require_regular(path, MOST_SETTINGS)
    return code_hash(Path(path).resolve())


def require_unedited(path: str, expected: str) -> None:
    """Raise `InputError` unless a custom file's code still has the hash `expected`."""
    if own_code(path) != expected:
        raise InputError(f"{path} has changed since the run started; run again.")
