"""A table's inputs besides frames: labels, estimators and studies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from tracecal.analyse.studies import models_of, of_study
from tracecal.errors import InputError
from tracecal.tables.words import listed


class Entry(NamedTuple):
    """An estimator as the rules pass it to a table or figure."""

    id: str
    label: str
    family: str
    role: str
    citation: str


Labels = Mapping[str, str]
Frames = Mapping[str, pl.DataFrame]


@dataclass(frozen=True)
class Settings:
    """The estimators in the order of their rows, labels by id, and the studies.

    Models stand in the order of `models`, tasks in that of their ids. `studies` holds 'main' (a
    model, its tasks) or 'cross' (models, their tasks), or both; `more` settings of a single table.
    """

    estimators: Sequence[Entry] = ()
    models: Labels = field(default_factory=dict)
    tasks: Labels = field(default_factory=dict)
    studies: Mapping[str, Mapping] = field(default_factory=dict)
    more: Mapping = field(default_factory=dict)

    def of_role(self, *roles: str) -> list[Entry]:
        """The estimators of these roles."""
        return [entry for entry in self.estimators if entry.role in roles]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The (model, task) pairs of the studies, in their order."""
        wanted = {
            (model, task)
            for members in self.studies.values()
            for model in models_of(members)
            for task in members["tasks"]
        }
        order = list(self.models)
        return sorted(wanted, key=lambda pair: (order.index(pair[0]), pair[1]))

    def scope(self, tasks: Sequence[str]) -> dict[str, pl.Expr]:
        """The main study's model, and those of its tasks that a table is about, as columns."""
        return {"model": pl.lit(self.studies["main"]["model"]), "tasks": pl.lit(" ".join(tasks))}

    def of_pairs(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of the studies' pairs."""
        wanted = pl.DataFrame(self.pairs, ["model", "task"], orient="row")
        return frame.join(wanted, on=["model", "task"], how="semi")

    def pair(self, model: str, task: str) -> str:
        """A pair's name: its task's, with its model's where there are several."""
        several = len({model for model, _ in self.pairs}) > 1
        return f"{self.models[model]} on {self.tasks[task]}" if several else self.tasks[task]

    def in_order(self) -> pl.Expr:
        """The place of a row's model; rows without one, means over all models, come last."""
        models = list(self.models)
        return pl.col("model").replace_strict(
            models, range(len(models)), default=len(models), return_dtype=pl.Int64
        )

    def select(self, frame: pl.DataFrame, study: str) -> pl.DataFrame:
        """A study's rows, of its pairs and its averages; `InputError` where there are none."""
        members = self.studies[study]
        pairs = pl.col("study").is_null() & of_study(members)
        chosen = frame.filter(pairs | (pl.col("study") == study))
        if "estimator" in frame.columns:
            chosen = chosen.filter(
                pl.col("estimator").is_in([entry.id for entry in self.estimators])
            )
        if chosen.is_empty():
            raise InputError(
                f"the metrics hold no row for the model(s) {', '.join(sorted(models_of(members)))} "
                f"on the task(s) {', '.join(sorted(members['tasks']))}; run the workflow for "
                "them, or change `study` in the configuration."
            )
        return chosen

    def absent_tasks(self, study: str, present: Sequence[str]) -> list[str]:
        """A note on the study's tasks without results, where there are any."""
        absent = [self.tasks[task] for task in sorted({*self.studies[study]["tasks"]} - {*present})]
        return [f"No results yet on {listed(absent)}."] if absent else []


def present_tasks(chosen: pl.DataFrame) -> list[str]:
    """The tasks of the rows, sorted."""
    return sorted(set(chosen["task"].drop_nulls()))
