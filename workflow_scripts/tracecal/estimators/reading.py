"""What families of estimators read, and their scores side by side."""

from collections.abc import Sequence

import polars as pl

from tracecal.errors import InputError
from tracecal.io.files import read_parquet
from tracecal.io.traces import evaluated, read_traces


def trace_answers(traces: str, task: str) -> pl.DataFrame:
    """The evaluated answers of a task with their traces."""
    return evaluated(read_traces(traces, ["example_id", "surprisal", "entropy"]), task)


# A supervised estimator's probabilities for a model's answers, task by task.


def supervised_answers(learned: str, task: str, slug: str) -> pl.DataFrame:
    """`example_id` and `probability` of the evaluated answers to the task `slug`.

    `learned` is the file of all of a model's answers, `task` that of the task's rows.
    """
    scored = read_parquet(learned, ["task", "example_id", "probability"])
    # Ids are unique only within a task.
    return evaluated(scored.filter(task=slug).drop("task"), task)


# A check that weights belong to the tokens of their answers.


def require_aligned(answers: pl.DataFrame, column: str) -> None:
    """Raise `InputError` unless the list `column` has one entry per token of its answer."""
    unequal = answers.filter(pl.col(column).list.len() != pl.col("surprisal").list.len())
    if unequal.height:
        raise InputError(
            f"the weights of example {unequal['example_id'][0]!r} belong to another answer, with "
            "another number of tokens. Recreate the file under weights/ with snakemake --force."
        )


# The normalised text by which two answers count as the same.


# Characters that may open or close an answer without being part of it; signs, currency and % are.
_OPENING = r"""^[\s\p{Pi}\p{Ps}"'¿¡]+"""
_CLOSING = r"""[\s\p{Pf}\p{Pe}"'.,;:!?…。、，；：！？؟؛،।]+$"""


def normalised(text: pl.Expr) -> pl.Expr:
    """Text without case, compatibility forms, surrounding punctuation or extra spaces."""
    plain = text.str.normalize("NFKC").str.to_lowercase()
    return plain.str.replace(_OPENING, "").str.replace(_CLOSING, "").str.replace_all(r"\s+", " ")


# Scores of one family, and of all families side by side.


def family_scores(
    frame: pl.DataFrame, scores: dict[str, pl.Expr], chosen: Sequence[str]
) -> pl.DataFrame:
    """`example_id` and the `chosen` scores, Float64, larger = more confident.

    Values that are not finite become null (undefined), so that none sorts as most confident.
    """
    columns = {
        name: pl.when((score := scores[name].cast(pl.Float64)).is_finite()).then(score)
        for name in chosen
    }
    return frame.select("example_id", **columns).sort("example_id")


def join_scores(
    ids: pl.DataFrame, families: Sequence[pl.DataFrame], order: Sequence[str]
) -> pl.DataFrame:
    """One row per `example_id` of `ids` with every family's scores, columns in `order`."""
    joined = ids
    for family in families:
        joined = joined.join(family, on="example_id", how="left", validate="1:1")
    return joined.select("example_id", *order).sort("example_id")
