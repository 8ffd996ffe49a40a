"""Custom estimators, from a Python file or a mapping."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracecal.errors import InputError
from tracecal.estimators.estimator import Estimator
from tracecal.estimators.registry import OF_FILES
from tracecal.io.python_tables import declared_in, with_names
from tracecal.io.settings import Strict, parse

if TYPE_CHECKING:  # slow to load, and not needed at import
    import polars as pl

Given = str | Path | Mapping[str, Any] | None  # a file, or what its ESTIMATORS would hold


class CustomEntry(Strict):
    """An estimator as a file defines it."""

    label: str
    score: Any  # a Polars expression over trace columns and features; larger: more confident
    citation: str = ""


def custom_estimators(given: Given) -> list[Estimator]:
    """Registry entries, all baselines, for the estimators that are given.

    Raises `InputError` where a file does not run or an id is another estimator's.
    """
    return [
        Estimator(name, entry.label, "custom", "baseline", entry.citation, ("traces", "features"))
        for name, entry in custom_entries(given).items()
    ]


def custom_entries(given: Given) -> dict[str, CustomEntry]:
    """The estimators by id, as they are defined; raises as `custom_estimators`."""
    if isinstance(given, Mapping):
        where, declared = "estimators", with_names(given, "estimators")
    else:
        expected = "id: {'label': 'Name', 'score': a Polars expression}"
        where, declared = str(given), declared_in(given, "ESTIMATORS", expected)
    if taken := [name for name in declared if name in {one.id for one in OF_FILES}]:
        raise InputError(f"{where}: {taken[0]!r} is the id of a built-in estimator; rename yours.")
    return {name: parse(CustomEntry, entry, f"{where}: {name}") for name, entry in declared.items()}


def custom_scores(given: Given) -> "dict[str, pl.Expr]":
    """The scores of these estimators by id; raises as `custom_estimators`."""
    return {name: entry.score for name, entry in custom_entries(given).items()}
