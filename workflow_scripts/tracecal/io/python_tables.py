"""Tables that a Python file of a user defines."""

import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracecal.errors import InputError
from tracecal.io.input_files import MOST_SETTINGS, require_regular


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
