"""Custom estimators, from a Python file (docs/guides/custom.md)."""

from typing import TYPE_CHECKING, Any

from tracecal.errors import InputError
from tracecal.estimators.entry import Estimator
from tracecal.estimators.registry import IDS
from tracecal.io.input_files import declared_in
from tracecal.io.settings import Strict, parse

if TYPE_CHECKING:  # slow to load, and not needed at import
    import polars as pl


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


def custom_scores(path: str | None) -> "dict[str, pl.Expr]":
    """The scores of a file's estimators by id; raises as `custom_estimators`."""
    return {name: entry.score for name, entry in custom_entries(path).items()}
