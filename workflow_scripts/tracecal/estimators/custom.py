"""Custom estimators, from a Python file or a mapping (docs/guides/extend.md)."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracecal.errors import InputError
from tracecal.estimators.estimator import Estimator
from tracecal.estimators.registry import CUSTOM, OF_FILES, OWN
from tracecal.io.input_files import read_python_table, require_names
from tracecal.io.settings import Strict, parse

if TYPE_CHECKING:  # slow to load, and not needed at import
    import polars as pl

Custom = Mapping[str, "pl.Expr"]  # scores by id: expressions over traces and all features
NO_CUSTOM: Custom = {}
CustomSource = str | Path | Mapping[str, Any] | None  # a file, or what its ESTIMATORS would hold


class CustomEntry(Strict):
    """A custom estimator as a file defines it."""

    label: str
    score: Any  # a Polars expression over trace columns and features; larger: more confident
    citation: str = ""


def custom_estimators(source: CustomSource) -> list[Estimator]:
    """Custom estimators, each a family of its own, so that a new one recomputes no other.

    Raises `InputError` where a file does not run, an id is a built-in estimator's, or a score
    cannot be computed.
    """
    entries = custom_entries(source)
    if entries:
        from tracecal.estimators.custom_scores import require_computable  # slow to load

        require_computable({name: entry.score for name, entry in entries.items()}, str(source))
    needs = ("traces", "features")
    return [
        Estimator(name, entry.label, f"{CUSTOM}{name}", "own", entry.citation, needs, shown_as=OWN)
        for name, entry in entries.items()
    ]


def custom_entries(source: CustomSource) -> dict[str, CustomEntry]:
    """Custom estimators by id, as they are defined. Raises as `custom_estimators`."""
    if isinstance(source, Mapping):
        where, declared = "estimators", require_names(source, "estimators")
    else:
        expected = "id: {'label': 'Name', 'score': a Polars expression}"
        where, declared = str(source), read_python_table(source, "ESTIMATORS", expected)
    built_in = {estimator.id for estimator in OF_FILES}
    if clashes := [name for name in declared if name in built_in]:
        raise InputError(
            f"{where}: {clashes[0]!r} is the id of a built-in estimator; rename yours."
        )
    return {name: parse(CustomEntry, entry, f"{where}: {name}") for name, entry in declared.items()}


def custom_scores(source: CustomSource) -> "dict[str, pl.Expr]":
    """The scores of custom estimators by id. Raises as `custom_estimators`.

    >>> import polars as pl
    >>> late = {"label": "Late entropy", "score": -pl.col("entropy").list.last()}
    >>> [*custom_scores({"late_entropy": late})]
    ['late_entropy']
    """
    return {name: entry.score for name, entry in custom_entries(source).items()}
