"""Custom estimators, from a Python file (docs/custom.md)."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from tracecal.errors import InputError
from tracecal.estimators.entry import Estimator
from tracecal.estimators.registry import IDS
from tracecal.io.input_files import declared_in
from tracecal.io.settings import Strict, parse

# The columns of traces that an expression may use, beside all features.
OF_TRACE = ("example_id", "answer", "finish_reason", "tokens", "surprisal", "entropy")


class CustomEntry(Strict):
    """An estimator as a file defines it."""

    label: str
    score: Any  # a Polars expression over trace columns and features; larger: more confident
    citation: str = ""


Custom = Mapping[str, CustomEntry]


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


def custom_scores(rows: pl.DataFrame, custom: Custom) -> pl.DataFrame:
    """`example_id` and a Float64 column for each estimator, of rows with `OF_TRACE` and features.

    Raises `InputError` where an expression does not work on these columns.
    """
    try:
        scores = {name: entry.score.cast(pl.Float64) for name, entry in custom.items()}
        return rows.select("example_id", **scores)
    except (pl.exceptions.PolarsError, AttributeError) as error:
        raise InputError(
            f"the scores of {', '.join(custom)} cannot be computed "
            f"({str(error).splitlines()[0]}); columns are {', '.join(rows.columns)}."
        ) from error
