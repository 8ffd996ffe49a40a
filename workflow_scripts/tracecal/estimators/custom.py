"""Custom estimators, from a Python file that the configuration names (docs/custom.md)."""

import runpy
from typing import Any

from tracecal.errors import InputError
from tracecal.estimators.entry import Estimator
from tracecal.estimators.registry import IDS
from tracecal.io.input_files import MOST_SETTINGS, require_regular
from tracecal.io.settings import Strict, parse


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
            raise InputError(f"{path}: {name!r} is not a valid name; use letters, digits and '_'.")
    return declared


class CustomEntry(Strict):
    """An estimator as a file defines it."""

    label: str
    score: Any  # a Polars expression over trace columns and features; larger: more confident
    citation: str = ""


def custom_estimators(path: str | None) -> list[Estimator]:
    """Registry entries, all baselines, for the estimators of a file; none without a file.

    Raises `InputError` where the file does not run or an id is another estimator's.
    """
    return [
        Estimator(name, entry.label, "custom", "baseline", entry.citation)
        for name, entry in custom_entries(path).items()
    ]


def custom_entries(path: str | None) -> dict[str, CustomEntry]:
    """The estimators of a file by id, as it defines them; raises as `custom_estimators`."""
    expected = "id: {'label': 'Name', 'score': a Polars expression}"
    declared = declared_in(path, "ESTIMATORS", expected)
    if taken := [name for name in declared if name in IDS]:
        raise InputError(f"{path}: {taken[0]!r} is the id of a built-in estimator; rename yours.")
    return {name: parse(CustomEntry, entry, f"{path}: {name}") for name, entry in declared.items()}
