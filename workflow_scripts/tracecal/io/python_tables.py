"""Tables in Python files of users, such as ESTIMATORS: dictionaries by name."""

import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracecal.errors import InputError
from tracecal.io.input_files import MOST_SETTINGS, require_regular


def read_python_table(path: str | Path | None, table: str, expected: str) -> dict[str, Any]:
    """Run a Python file and return the dictionary named `table`; empty without a file."""
    if path is None:
        return {}
    require_regular(path, MOST_SETTINGS)
    try:
        declared = runpy.run_path(str(path)).get(table)
    except Exception as error:
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
