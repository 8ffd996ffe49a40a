"""Inputs of the estimators that need only an answer's trace, and their bounds.

Inputs are named as in the calibration protocol: `features.<name>` and `scores.<estimator>`.
`compute_inputs(answers, names)` computes them, and `compute_bounded_inputs` their bounds, too.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from tracecal.answers.record import ALSO, own_column
from tracecal.errors import InputError
from tracecal.estimators.features import (
    FEATURES,
    INPUTS,
    answer_features,
    blocks,
    bounded_inputs,
    input_matrix,
)
from tracecal.io.log import LOGGER

# Custom estimators by id: expressions over TRACE_COLUMNS and all features.
Custom = Mapping[str, pl.Expr]
NO_CUSTOM: Custom = {}
# What an expression of the user's may raise: anything, as it may hold functions.
FAILURES = (Exception, pl.exceptions.PanicException)
ENTROPIES = ("entropy", "entropy_lower", "entropy_upper")
TRACE_COLUMNS = ("example_id", "answer", "finish_reason", "tokens", "surprisal", "entropy")
TRACE_INPUTS = tuple(INPUTS)


def compute_inputs(
    answers: pl.DataFrame, names: Iterable[str] = TRACE_INPUTS, custom: Custom = NO_CUSTOM
) -> pl.DataFrame:
    """Compute `example_id` and the inputs `names`, Float64, of answers with their traces.

    Inputs of `custom` estimators are their scores, and inputs of own columns their values. A value
    is missing if it is undefined, or if a needed `surprisal` or `entropy` is missing.

    >>> answers = pl.DataFrame({"example_id": ["a"], "surprisal": [[0.0]], "entropy": [[0.5]]})
    >>> compute_inputs(answers, ["scores.min_prob"])["scores.min_prob"].item()
    1.0
    """
    names = list(names)
    of_trace = [name for name in names if name in INPUTS]
    numbers = pl.col(names).cast(pl.Float64)
    beside = _beside_traces(answers, names, custom)
    frame = pl.DataFrame(input_matrix(answers, of_trace), of_trace, nan_to_null=True)
    return beside.hstack(frame).select("example_id", pl.when(numbers.is_finite()).then(numbers))


def _beside_traces(answers: pl.DataFrame, names: Sequence[str], custom: Custom) -> pl.DataFrame:
    """`example_id` and the inputs of no trace: own columns, and scores of custom estimators."""
    also = [name for name in names if name.startswith(ALSO)]
    columns = {name: own_column(name.removeprefix(ALSO)) for name in also}
    frame = answers.select("example_id", **columns)
    requested = {name: score for name, score in custom.items() if f"scores.{name}" in names}
    if requested:
        rows = answers.select(TRACE_COLUMNS).hstack(answer_features(answers).select(*FEATURES))
        scores = compute_custom_scores(rows, requested).drop("example_id")
        frame = frame.hstack(scores.rename({name: f"scores.{name}" for name in requested}))
    return frame


def compute_custom_scores(rows: pl.DataFrame, custom: Custom) -> pl.DataFrame:
    """Compute `example_id` and the Float64 score of each custom estimator.

    `rows` have TRACE_COLUMNS and all features. A score that fails on some answers is missing for
    these answers, and a warning counts them. Raises `InputError` where one fails on every answer.
    """
    scores = {name: _custom_score(rows, name, score) for name, score in custom.items()}
    return rows.select("example_id", **scores)


def _custom_score(rows: pl.DataFrame, name: str, score: pl.Expr) -> pl.Series:
    number = score.cast(pl.Float64).alias(name)
    try:
        return rows.select("example_id", number)[name]
    except FAILURES:
        values, errors = [], []
        for row in rows.iter_slices(1):
            try:
                values.append(row.select(number).item())
            except FAILURES as error:
                values.append(None)
                errors.append(error)
        if len(errors) == rows.height:
            raise uncomputable(name, errors[0], rows.columns) from errors[0]
        LOGGER.warning(
            "the score %r fails on %d of %d answers, which go without it (%s)",
            *(name, len(errors), rows.height, first_line(errors[0])),
        )
        return pl.Series(name, values, pl.Float64)


def uncomputable(name: str, error: BaseException, columns: Iterable[str]) -> InputError:
    """The error of a custom score that cannot be computed."""
    return InputError(
        f"the score {name!r} cannot be computed ({first_line(error)}); columns are "
        f"{', '.join(columns)}."
    )


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or the error's name.

    >>> first_line(ValueError("no digit\\nin the answer"))
    'no digit'
    """
    return next(iter(str(error).splitlines()), type(error).__name__)


def compute_bounded_inputs(
    answers: pl.DataFrame, names: Iterable[str] = TRACE_INPUTS, custom: Custom = NO_CUSTOM
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Compute the inputs `names` and their lower and upper bounds.

    Each entropy lies between its bounds; without bounds it is exact. A bound is missing where none
    is known: for an input of UNBOUNDED or a custom one, or without upper bounds of the entropies.
    """
    names = list(names)
    of_trace = [name for name in names if name in INPUTS]
    numbers = pl.col(names).cast(pl.Float64)
    finite = pl.when(numbers.is_finite()).then(numbers)
    exact = answers.with_columns(pl.when(pl.col("entropy_upper").is_null()).then("entropy"))
    further, bounds = (_beside_traces(rows, names, custom) for rows in (answers, exact))
    x = np.full((3, answers.height, len(of_trace)), np.nan)
    for rows, lists in blocks(answers, ("surprisal", *ENTROPIES)):
        if lists[0] is not None or lists[1] is not None:
            x[:, rows] = bounded_inputs(of_trace, *lists)
    values, lower, upper = (
        beside.hstack(pl.DataFrame(table, of_trace, nan_to_null=True)).select("example_id", finite)
        for beside, table in zip((further, bounds, bounds), x, strict=True)
    )
    return values, lower, upper
