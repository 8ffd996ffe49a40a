"""What a result is made from, as values: analyses, tables, figures and families of estimators.

Paths are patterns: {model}, {task}, {questions}, the results' folder as <results>."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tracecal.estimators.estimator import Estimator
from tracecal.estimators.registry import module_of

QUESTIONS = "<results>/{questions}/{task}.parquet"
# The folder of tasks' rows of which a seeded subset is evaluated.
SUBSETS = "work/subsets"
Study = Literal["main", "all", "parts", "whole"]  # 'whole': all but 'parts'


@dataclass(frozen=True)
class PerPair:
    """A file of each (model, task) pair of a study, or of all; of `models` where given."""

    pattern: str
    study: Study = "main"
    models: Sequence[str] | None = None


Inputs = Mapping[str, str | Sequence[str] | PerPair]


@dataclass(frozen=True)
class Result:
    """The files that a result is made from, by name, and settings, which are plain values.

    With `pairs` the pairs of that study, in the order of its files, are a setting too. With
    `sharing` files and pairs are those of these models alone, and of tasks that all of them have.
    """

    name: str
    inputs: Inputs
    settings: Mapping[str, object] = field(default_factory=dict)
    pairs: Study | None = None
    sharing: Sequence[str] = ()


@dataclass(frozen=True)
class Analysis(Result):
    """analyses/<name>.parquet: the frame that `analysis(**inputs, **settings)` returns.

    The function is in the module of `analyse` with the analysis' name, unless `made_by` names
    another. A `quick` one takes a second and need not be queued on a cluster.
    """

    made_by: str = ""
    quick: bool = False

    @property
    def module(self) -> str:
        return f"trace_workflow.analyses.{self.made_by or self.name}"


@dataclass(frozen=True)
class Figure(Result):
    """figures/<name>.{pdf,svg}: what `draw(**inputs, **settings)` of the module <name> draws."""

    @property
    def module(self) -> str:
        return f"trace_workflow.figures.{self.name}"


@dataclass(frozen=True)
class Table:
    """tables/<name>.{tex,csv,html}: what `table(frames, settings)` of a module returns.

    It reads `analyses`; its settings are its `studies` with their labels, its `estimators`, and
    `more` of its own. The module is the one of its name, unless `made_by` names another. A table
    `of_subset` reads the analyses of a subset of the answers, analyses/subset_<name>.parquet.
    """

    name: str
    analyses: Sequence[str] = ()
    studies: Sequence[Literal["main", "cross", "parts", "all"]] = ("main",)
    estimators: Sequence[Estimator] = ()
    more: Mapping[str, object] = field(default_factory=dict)
    made_by: str = ""
    short_models: bool = False
    of_subset: bool = False

    @property
    def inputs(self) -> Inputs:
        prefix = "subset_" if self.of_subset else ""
        return {name: analysed(prefix + name) for name in self.analyses}

    @property
    def module(self) -> str:
        return f"trace_workflow.tables.{self.made_by or self.name}"


@dataclass(frozen=True)
class Family:
    """A family of estimators, scored from what `answers(**inputs, **settings)` of its module reads.

    `scores` are the ids of those that the run computes. With `by_task` the task's slug is a
    setting. `custom_code` is the hash of the user's file that a custom family is read from.
    """

    name: str
    scores: Sequence[str]
    inputs: Mapping[str, str]
    settings: Mapping[str, object] = field(default_factory=dict)
    by_task: bool = False
    custom_code: str = ""

    @property
    def module(self) -> str:
        return module_of(self.name)

    def settings_of(self, task: str) -> dict[str, object]:
        return {**self.settings, **({"slug": task} if self.by_task else {})}


def analysed(name: str) -> str:
    """The file of an analysis."""
    return f"<results>/analyses/{name}.parquet"
