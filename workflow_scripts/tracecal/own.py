"""Estimators of one's own, from a Python file that the configuration names (docs/estimators.md)."""

import runpy
from pathlib import Path
from typing import Any

from tracecal.errors import InputError
from tracecal.registry import IDS, Estimator
from tracecal.schema import Strict, parse

EXPECTED = "a dict ESTIMATORS of id: {'label': 'Name', 'score': a Polars expression}"
FAMILY = "own"


class Entry(Strict):
    """What a file says of one estimator."""

    label: str
    score: Any  # a Polars expression over trace columns and features, larger = more confident
    citation: str = ""


def own_estimators(path: str | None) -> list[Estimator]:
    """The registry's entries for the estimators of a file, baselines all; none without one.

    Raises `InputError` where the file does not run or an id is another estimator's.
    """
    return [
        Estimator(name, entry.label, FAMILY, "baseline", entry.citation, ("traces",))
        for name, entry in own_entries(path).items()
    ]


def own_entries(path: str | None) -> dict[str, Entry]:
    """As `own_estimators`, what the file itself says of each."""
    if path is None:
        return {}
    try:
        declared = runpy.run_path(str(Path(path))).get("ESTIMATORS")
    except Exception as error:
        raise InputError(f"{path}: does not run ({type(error).__name__}: {error}).") from error
    if not isinstance(declared, dict) or not declared:
        raise InputError(f"{path}: expected {EXPECTED}.")
    for name in declared:
        if not isinstance(name, str) or not name.isidentifier() or name in IDS:
            raise InputError(
                f"{path}: {name!r} cannot name an estimator of yours: use letters, digits and '_', "
                f"and none of the ids that there are."
            )
    return {name: parse(Entry, entry, f"{path}: {name}") for name, entry in declared.items()}
