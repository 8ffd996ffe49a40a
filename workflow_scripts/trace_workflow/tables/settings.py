"""A table's inputs besides frames: labels, estimators, studies and their averages."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from trace_workflow.analyses.study_files import models_of, of_study
from trace_workflow.tables.captions import listed
from tracecal.errors import InputError
from tracecal.estimators.entry import Entry

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


# A study's averages, for figures.


class Average(NamedTuple):
    """A mean over splits, null where undefined; those of single splits; and answers in a split."""

    mean: float | None
    values: Sequence[float | None]
    n: float | None


ModelAverages = Mapping[tuple[str, str, str], Average]
MISSING = Average(None, (), None)


def select(
    averages: pl.DataFrame, entries: Sequence[Entry], study: str, members: Mapping
) -> pl.DataFrame:
    """The means over the tasks of each model of a study; `InputError` where there are none."""
    return _chosen(averages, entries, study, members).filter(study=study).drop_nulls("model")


def over_tasks(selected: pl.DataFrame) -> ModelAverages:
    """The averages that `select` returns, by model, estimator and metric."""
    rows = selected.select("model", "estimator", "metric", "mean", "values", "n").iter_rows()
    return {
        (model, estimator, metric): Average(*average) for model, estimator, metric, *average in rows
    }


def basis(
    averages: pl.DataFrame,
    entries: Sequence[Entry],
    study: str,
    members: Mapping,
    tasks: Labels,
    width: int = 30,
) -> str:
    """What a study's averages are made from: its tasks with results, and answers in a split."""
    chosen = _chosen(averages, entries, study, members)
    n = chosen.filter(study=study).drop_nulls("model")["n"].max()
    names = listed([tasks[task] for task in present_tasks(chosen)])
    return textwrap.fill(f"mean over {names}; n = {n or 0:.0f} held-out answers", width)


def _chosen(
    averages: pl.DataFrame, entries: Sequence[Entry], study: str, members: Mapping
) -> pl.DataFrame:
    return Settings(entries, studies={study: members}).select(averages, study)
