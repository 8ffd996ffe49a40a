"""The reader of the studies behind a table.

1. `StudyResults.select` takes the rows of an analysis that belong to a study.
2. `StudyResults.pivot` makes a row per estimator: a mean, its s.d. and undefined splits per column.
3. `labels`, `pair_label` and `scope` name the rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from trace_workflow.analyses.study_files import in_study, models_of
from trace_workflow.tables.wording import join_names
from tracecal.errors import InputError
from tracecal.estimators.estimator import Entry

Labels = Mapping[str, str]  # by id
Frames = Mapping[str, pl.DataFrame]  # by analysis
ScoredShares = Mapping[tuple[str, str, str], float]  # by model, task and estimator


@dataclass(frozen=True)
class StudyResults:
    """The frames of a table's analyses, with the names and the order of their rows.

    Rows follow the order of `estimators`, of `models`, and of the tasks' ids. `studies` holds
    'main' (a model and its tasks), 'cross' (models and their tasks) or both; `options` are settings
    of a single table.

    >>> study = StudyResults(models={"m": "Tiny"}, tasks={"s": "SVAMP"},
    ...               studies={"main": {"model": "m", "tasks": ["s"]}})
    >>> study.pairs, study.pair_label("m", "s")
    ([('m', 's')], 'SVAMP')
    """

    frames: Frames = field(default_factory=dict)
    estimators: Sequence[Entry] = ()
    models: Labels = field(default_factory=dict)
    tasks: Labels = field(default_factory=dict)
    studies: Mapping[str, Mapping] = field(default_factory=dict)
    options: Mapping = field(default_factory=dict)

    @cached_property
    def labels(self) -> dict[str, str]:
        """The estimators' labels."""
        return {entry.id: entry.label for entry in self.estimators}

    def measured(self, averages: pl.DataFrame) -> list[Entry]:
        """The estimators that have an average."""
        ids = set(averages["estimator"])
        return [entry for entry in self.estimators if entry.id in ids]

    def with_role(self, *roles: str) -> list[Entry]:
        """The estimators with one of these roles."""
        return [entry for entry in self.estimators if entry.role in roles]

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """The (model, task) pairs of the studies, in their order."""
        pairs = {
            (model, task)
            for members in self.studies.values()
            for model in models_of(members)
            for task in members["tasks"]
        }
        order = list(self.models)
        return sorted(pairs, key=lambda pair: (order.index(pair[0]), pair[1]))

    def pair_label(self, model: str, task: str) -> str:
        """The task's label, with the model's where the studies have several."""
        several = len({model for model, _ in self.pairs}) > 1
        return f"{self.models[model]} on {self.tasks[task]}" if several else self.tasks[task]

    @property
    def pair_sections(self) -> tuple[pl.Expr, dict[str, str]]:
        """A section for each pair, and the sections' titles."""
        titles = {f"{model}/{task}": self.pair_label(model, task) for model, task in self.pairs}
        return pl.concat_str("model", "task", separator="/"), titles

    def scope(self, tasks: Sequence[str]) -> dict[str, pl.Expr]:
        """The main study's model and the `tasks` behind a table, as columns."""
        return {"model": pl.lit(self.studies["main"]["model"]), "tasks": pl.lit(" ".join(tasks))}

    @property
    def model_order(self) -> pl.Expr:
        """The place of a row's model; means over all models, which have none, come last."""
        models = list(self.models)
        return pl.col("model").replace_strict(
            models, range(len(models)), default=len(models), return_dtype=pl.Int64
        )

    def in_pairs(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of the studies' pairs."""
        pairs = pl.DataFrame(self.pairs, ["model", "task"], orient="row")
        return frame.join(pairs, on=["model", "task"], how="semi")

    def select(self, analysis: str, study: str = "main") -> pl.DataFrame:
        """The rows of an analysis on a study's pairs, and its averages.

        Raises `InputError` where there is no such row.
        """
        return select_study(self.frames[analysis], self.estimators, study, self.studies[study])

    def pivot(
        self,
        averages: pl.DataFrame,
        columns: Mapping[str, tuple],
        by: Sequence[str],
        estimators: Sequence[Entry] | None = None,
    ) -> list[dict]:
        """A row per estimator: its id and label, then `summary_columns`.

        `columns` has by column the values of `by` that select an estimator's average.
        """
        means = rows_by(averages, "estimator", *by)
        return [
            {"estimator": entry.id, "label": entry.label}
            | summary_columns(
                {column: means.get((entry.id, *key), {}) for column, key in columns.items()}
            )
            for entry in (self.estimators if estimators is None else estimators)
        ]

    def missing_tasks(self, study: str, present: Sequence[str]) -> list[str]:
        """A note on the tasks of a study that have no results yet."""
        tasks = sorted({*self.studies[study]["tasks"]} - {*present})
        names = [self.tasks[task] for task in tasks]
        return [f"No results yet on {join_names(names)}."] if names else []

    @cached_property
    def scored_shares(self) -> ScoredShares:
        """The share of answers that an estimator scores, where it is below 1."""
        averages = self.frames["averages"].filter(pl.col("study").is_null(), metric="brier")
        share = pl.col("n") / pl.col("n").max().over("model", "task")
        shares = averages.select("model", "task", "estimator", share=share)
        rows = self.in_pairs(shares).filter(
            pl.col("share") < 1, pl.col("estimator").is_in(list(self.labels))
        )
        by_key = {tuple(key): share for *key, share in rows.iter_rows()}
        keys = [(*pair, estimator) for pair in self.pairs for estimator in self.labels]
        return {key: by_key[key] for key in keys if key in by_key}

    @cached_property
    def accuracies(self) -> list[dict]:
        """The rows of the analysis `accuracy` for the studies' pairs, in their order."""
        by_pair = rows_by(self.frames["accuracy"], "model", "task")
        return [by_pair[pair] for pair in self.pairs if pair in by_pair]

    def count_answers(self, keys: Sequence[str]) -> pl.DataFrame:
        """How many answers are `right`, of how many `answers`, and their `accuracy`, by `keys`.

        By model alone there is one more row, without a model, for all models.
        """
        counts = pl.DataFrame(self.accuracies, schema=self.frames["accuracy"].schema)
        overall = counts.with_columns(model=pl.lit(None, pl.String))
        parts = [counts, overall] if list(keys) == ["model"] else [counts]
        right, answers = pl.col("correct").sum(), pl.col("n").sum()
        sums = pl.concat(parts).group_by(keys)
        return sums.agg(right=right, answers=answers, accuracy=right / answers)


def select_study(
    frame: pl.DataFrame, estimators: Sequence[Entry], study: str, members: Mapping
) -> pl.DataFrame:
    """The rows of `estimators` on a study's pairs, and its averages; of comparisons, all rows.

    Raises `InputError` where there is no such row.
    """
    pairs = pl.col("study").is_null() & in_study(members)
    averages = pl.col("study") == study
    if "model" in members:
        averages &= pl.col("model") == members["model"]
    rows = frame.filter(pairs | averages)
    if "estimator" in frame.columns and "against" not in frame.columns:
        rows = rows.filter(pl.col("estimator").is_in([entry.id for entry in estimators]))
    if rows.is_empty():
        raise InputError(
            f"the metrics hold no row for the model(s) {', '.join(sorted(models_of(members)))} "
            f"on the task(s) {', '.join(sorted(members['tasks']))}; run the workflow for "
            "them, or change `study` in the configuration."
        )
    return rows


def tasks_of(rows: pl.DataFrame) -> list[str]:
    """The tasks of the rows, sorted."""
    return sorted(set(rows["task"].drop_nulls()))


def rows_by(frame: pl.DataFrame, *keys: str) -> dict[tuple, dict]:
    """The rows of a frame by their keys.

    >>> rows_by(pl.DataFrame({"task": ["a"], "n": [3]}), "task")
    {('a',): {'task': 'a', 'n': 3}}
    """
    return {tuple(row[key] for key in keys): row for row in frame.iter_rows(named=True)}


def summary_columns(averages: Mapping[str, Mapping]) -> dict[str, object]:
    """Means by name, then their `_sd` and `_undefined_splits`; a missing average is empty.

    >>> summary_columns({"brier": {"mean": 0.2, "sd": 0.01, "undefined": 1}})
    {'brier': 0.2, 'brier_sd': 0.01, 'brier_undefined_splits': 1}
    """
    ends = {"": ("mean", None), "_sd": ("sd", None), "_undefined_splits": ("undefined", 0)}
    return {
        f"{name}{end}": average.get(key, default)
        for end, (key, default) in ends.items()
        for name, average in averages.items()
    }


def frame_of(rows: Sequence[Mapping]) -> pl.DataFrame:
    """A frame of rows with the same keys; a column without any value is numeric."""
    return pl.DataFrame(rows, infer_schema_length=None).cast({pl.Null: pl.Float64})
