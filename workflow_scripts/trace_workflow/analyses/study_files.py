"""The files of a study: one of a kind, or one for each of its (model, task) pairs.

1. `files["averages"]` is the path of a single file, or the list of paths.
2. `files.read("labels", columns)` is one frame of all pairs, with their `model` and `task`.
3. `files.by_pair("labels", "scores")` goes through the pairs, with the paths of each.

The study `main` evaluates one model, and `cross` compares several, each on its own tasks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tracecal.errors import InputError
from tracecal.io.files import read_parquet

KEYS = ["model", "task", "example_id"]


@dataclass(frozen=True)
class StudyFiles:
    """Paths by kind, in the order of the (model, task) `pairs` where a kind has one per pair."""

    paths: Mapping[str, str | Sequence[str]]
    pairs: Sequence[Sequence[str]] = ()

    def __getitem__(self, kind: str) -> str | Sequence[str]:
        return self.paths[kind]

    def by_pair(self, *kinds: str) -> Iterator[tuple[str, str, dict[str, str]]]:
        """The model and task of each pair, and its path of each kind.

        >>> files = StudyFiles({"labels": ["a.parquet"]}, [["small", "sums"]])
        >>> list(files.by_pair("labels"))
        [('small', 'sums', {'labels': 'a.parquet'})]
        """
        for (model, task), *paths in zip(
            self.pairs, *(self.paths[kind] for kind in kinds), strict=True
        ):
            yield model, task, dict(zip(kinds, paths, strict=True))

    def read(
        self,
        kind: str,
        columns: Sequence[str],
        reader: Callable[[str, Sequence[str]], pl.DataFrame] = read_parquet,
    ) -> pl.DataFrame:
        """`model`, `task` and `columns` of the files of a kind, pair after pair.

        Raises `InputError` where there is no pair, and where a file is unreadable or lacks a
        column.
        """
        if not self.pairs:
            raise InputError(
                "no (model, task) pair of the main study is finished: run the workflow for one of "
                "them, or change `study` in the configuration."
            )
        return pl.concat(
            reader(paths[kind], columns).select(
                pl.lit(model).alias("model"), pl.lit(task).alias("task"), *columns
            )
            for model, task, paths in self.by_pair(kind)
        )

    def labels(self) -> pl.DataFrame:
        """KEYS and `correct` of the answers of each pair."""
        return self.read("labels", ["example_id", "correct"])

    def splits(self) -> pl.DataFrame:
        """KEYS, `split` and `part` of the examples of each pair."""
        return self.read("splits", ["example_id", "split", "part"])

    @property
    def scope(self) -> dict[str, pl.Expr]:
        """The one model and the sorted tasks of the pairs, as columns `model` and `tasks`."""
        tasks = " ".join(sorted(task for _, task in self.pairs))
        return {"model": pl.lit(self.pairs[0][0]), "tasks": pl.lit(tasks)}


def models_of(study: Mapping[str, Any]) -> Sequence[str]:
    """The ids of a study's models, or of its one model.

    >>> models_of({"model": "small", "tasks": ["sums"]})
    ['small']
    """
    return study["models"] if "models" in study else [study["model"]]


def in_study(study: Mapping[str, Any]) -> pl.Expr:
    """Whether a row's `model` and `task` are one of a study's pairs."""
    return pl.col("model").is_in(models_of(study)) & pl.col("task").is_in(study["tasks"])
