"""Scores of custom estimators: expressions over the columns of traces and features.

`with_own_inputs` adds them to answers, and the values of the user's own columns.
"""

from collections.abc import Collection, Iterable, Mapping

import polars as pl

from tracecal.answers.record import ALSO, own_column
from tracecal.errors import InputError
from tracecal.estimators.custom import NO_CUSTOM, Custom, custom_scores
from tracecal.estimators.families import ComputedScores
from tracecal.estimators.features import FEATURES, answer_features
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet
from tracecal.io.log import LOGGER
from tracecal.io.traces import read_traces

SCORES = ComputedScores()
# What an expression of the user's may raise: anything, as it may hold functions.
FAILURES = (Exception, pl.exceptions.PanicException)
TRACE_COLUMNS = ("example_id", "answer", "finish_reason", "tokens", "surprisal", "entropy")
# Two answers, to try expressions on.
TRIAL = pl.DataFrame(
    {
        "example_id": ["a", "b"],
        "answer": ["Paris", "It is 42."],
        "finish_reason": ["eos", "length"],
        "tokens": [["Pa", "ris", ""], ["It", " is", " 4", "2", "."]],
        "surprisal": [[0.5, 0.1, 0.2], [1.5, 0.2, 2.0, 0.7, 0.1]],
        "entropy": [[0.9, 0.2, 0.4], [2.5, 0.3, 1.8, 1.1, 0.2]],
    },
    schema_overrides=dict.fromkeys(("surprisal", "entropy"), pl.List(pl.Float32)),
).select(TRACE_COLUMNS)
# Errors of Polars and Python that depend on the values of an answer, not on its columns; and what
# Polars raises where the type of such an error takes more than a text.
BY_VALUE = (pl.exceptions.ComputeError, ArithmeticError, LookupError, ValueError)
NOT_RAISED_ANEW = "__init__() missing"


def require_computable(scores: Mapping[str, pl.Expr], where: str) -> None:
    """Raise `InputError` where a score of `where` has no number for each answer.

    What fails on the values of `TRIAL` may work on others, so only columns, types and names count.
    """
    rows = TRIAL.hstack(answer_features(TRIAL).select(*FEATURES))
    for name, score in scores.items():
        if not isinstance(score, pl.Expr):
            raise InputError(f"{where}: the score {name!r} is not a Polars expression; give one.")
        try:
            values = rows.select(score.alias(name))[name]
        except FAILURES as error:
            if isinstance(error, BY_VALUE) or NOT_RAISED_ANEW in str(error):
                continue
            raise InputError(f"{where}: {uncomputable(name, error, rows.columns)}") from error
        if not (values.dtype.is_numeric() or values.dtype == pl.Boolean):
            raise InputError(
                f"{where}: the score {name!r} is of type {values.dtype}; it must be a number."
            )
        if values.len() != rows.height:
            raise InputError(
                f"{where}: the score {name!r} is one number for all answers; it must be one for "
                "each answer."
            )


def with_own_inputs(
    answers: pl.DataFrame, names: Collection[str], custom: Custom = NO_CUSTOM
) -> pl.DataFrame:
    """Add those of the inputs `names` that no trace gives: own columns, and `custom` scores."""
    also = [name for name in names if name.startswith(ALSO)]
    answers = answers.with_columns(own_column(name.removeprefix(ALSO)).alias(name) for name in also)
    requested = {name: score for name, score in custom.items() if f"scores.{name}" in names}
    if not requested:
        return answers
    rows = answers.select(TRACE_COLUMNS).hstack(answer_features(answers).select(*FEATURES))
    scores = compute_custom_scores(rows, requested).drop("example_id")
    return answers.hstack(scores.rename({name: f"scores.{name}" for name in requested}))


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


def answers(traces: str, features: str, task: str, file: str, score: str) -> pl.DataFrame:
    """`example_id` and the `score` of the evaluated answers, by the estimator of `file`.

    Raises `InputError` where the expression works on none of them.
    """
    columns = read_parquet(features, needed=["example_id"])
    frame = evaluated(read_traces(traces, list(TRACE_COLUMNS)), task)
    frame = frame.join(columns, on="example_id", how="left", validate="1:1")
    return compute_custom_scores(frame, {score: custom_scores(file)[score]})
