"""Scores of custom estimators: expressions over the columns of traces and features."""

from collections.abc import Mapping

import polars as pl

from tracecal.errors import InputError
from tracecal.estimators.custom import custom_scores
from tracecal.estimators.families import ComputedScores
from tracecal.estimators.features import FEATURES, answer_features
from tracecal.estimators.trace_inputs import (
    FAILURES,
    TRACE_COLUMNS,
    compute_custom_scores,
    uncomputable,
)
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet
from tracecal.io.traces import read_traces

SCORES = ComputedScores()
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


def answers(traces: str, features: str, task: str, file: str, score: str) -> pl.DataFrame:
    """`example_id` and the `score` of the evaluated answers, by the estimator of `file`.

    Raises `InputError` where the expression works on none of them.
    """
    columns = read_parquet(features, needed=["example_id"])
    frame = evaluated(read_traces(traces, list(TRACE_COLUMNS)), task)
    frame = frame.join(columns, on="example_id", how="left", validate="1:1")
    return compute_custom_scores(frame, {score: custom_scores(file)[score]})
