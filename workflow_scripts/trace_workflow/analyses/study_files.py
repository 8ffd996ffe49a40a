"""The files of a study's (model, task) pairs, read as one frame."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from tracecal.errors import InputError
from tracecal.io.files import read_parquet

KEYS = ["model", "task", "example_id"]
# Files of one kind, one per (model, task) pair.
Paths = Sequence[str]
Pairs = Sequence[Sequence[str]]


def by_pair(pairs: Pairs, **paths: Paths) -> dict[tuple[str, str], dict[str, str]]:
    """The file of each kind of `paths`, by (model, task)."""
    return {
        (model, task): dict(zip(paths, own, strict=True))
        for (model, task), *own in zip(pairs, *paths.values(), strict=True)
    }


def read_pairs(
    paths: Paths,
    pairs: Pairs,
    columns: Sequence[str],
    read: Callable[[str, Sequence[str]], pl.DataFrame] = read_parquet,
) -> pl.DataFrame:
    """`model`, `task` and `columns` of the file of each pair, in their order.

    `paths` has one path per pair. Raises `InputError` where there is no pair, and where a file is
    unreadable or lacks a column.
    """
    if not pairs:
        raise InputError(
            "no (model, task) pair of the main study is finished: run the workflow for one of "
            "them, or change `study` in the configuration."
        )
    return pl.concat(
        read(path, columns).select(
            pl.lit(model).alias("model"), pl.lit(task).alias("task"), *columns
        )
        for path, (model, task) in zip(paths, pairs, strict=True)
    )


def read_labels(paths: Paths, pairs: Pairs) -> pl.DataFrame:
    """KEYS and `correct` of the answers of each pair."""
    return read_pairs(paths, pairs, ["example_id", "correct"])


def read_splits(paths: Paths, pairs: Pairs) -> pl.DataFrame:
    """KEYS, `split` and `part` of the examples of each pair."""
    return read_pairs(paths, pairs, ["example_id", "split", "part"])


def scope(pairs: Pairs) -> dict[str, pl.Expr]:
    """The scope of one model's analysis, as columns `model` and `tasks` (sorted)."""
    tasks = " ".join(sorted(task for _, task in pairs))
    return {"model": pl.lit(pairs[0][0]), "tasks": pl.lit(tasks)}


# A run's studies: 'main' evaluates one model, 'cross' compares several, each on its own tasks.


def models_of(study: Mapping[str, Any]) -> Sequence[str]:
    """The ids of a study's models, or of its one model."""
    return study["models"] if "models" in study else [study["model"]]


def of_study(study: Mapping[str, Any]) -> pl.Expr:
    """Whether a row's `model` and `task` are one of a study's pairs."""
    return pl.col("model").is_in(models_of(study)) & pl.col("task").is_in(study["tasks"])
