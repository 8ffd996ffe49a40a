"""The entries of a plan: what analyses, tables, figures and families of estimators are made from.

Paths are patterns: {model}, {task} and {questions} are wildcards, <results> is the run's folder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tracecal.estimators.estimator import Estimator
from tracecal.estimators.registry import module_of

QUESTIONS = "<results>/{questions}/{task}.parquet"
# The folder of the tasks' rows with a seeded subset of evaluation rows.
SUBSETS = "work/subsets"
# 'main': of its first model; 'broader': the main study's tasks, of the models of `study.broader`;
# 'whole': all but 'parts'
Study = Literal["main", "broader", "all", "parts", "whole"]


@dataclass(frozen=True)
class PerPair:
    """A file of each (model, task) pair of a study."""

    pattern: str
    study: Study = "main"


# Files of each pair; in the study of parts, 'wholes' and 'whole_scores' are of the whole answers.
FILES = {
    kind: f"<results>/{kind}/{{model}}/{{task}}.parquet"
    for kind in ("operators", "features", "labels", "scores", "predictions")
} | {
    "traces": "<results>/traces/{model}/{task}.arrow",
    "splits": "<results>/splits/{task}.parquet",
    "tasks": "<results>/tasks/{task}.parquet",
    "questions": QUESTIONS,
    "wholes": "<results>/traces/{model}/{parent}.arrow",
    "whole_scores": "<results>/scores/{model}/{parent}.parquet",
}


def pair_files(kinds: str, study: Study = "main") -> dict[str, PerPair]:
    """The files of these kinds (`FILES`) of each pair of a study."""
    return {kind: PerPair(FILES[kind], study) for kind in kinds.split()}


Inputs = Mapping[str, str | Sequence[str] | PerPair]


@dataclass(frozen=True)
class Result:
    """A result's input files by name, and its settings as plain values.

    `pairs` adds the pairs of a study to the settings, in the order of their files.
    """

    name: str
    inputs: Inputs
    settings: Mapping[str, object] = field(default_factory=dict)
    pairs: Study | None = None


@dataclass(frozen=True)
class Analysis(Result):
    """analyses/<name>.parquet: the frame that a `function(files, **settings)` returns.

    It is `analysis` in the module of `trace_workflow.analyses` with the analysis' name, or in
    `made_by`. A `quick` analysis takes a second and need not be queued on a cluster.
    """

    made_by: str = ""
    function: str = "analysis"
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
class PlannedTable:
    """tables/<name>.{tex,csv,html}: what a `function(study)` of a module returns.

    The study has the frames of `analyses`, the `studies` with their labels, the
    `estimators`, and `more`. The module of `trace_workflow.tables` has the name of the table's
    `kind`, or is `made_by`, where the `function` of one of several tables has that name. A table
    `of_subset` reads the analyses of a subset of the answers, analyses/subset_<name>.parquet. The
    name is the kind; that of another `model` of the main study than the first ends in it:
    main_comparison_{model}.
    """

    kind: str
    analyses: Sequence[str] = ()
    studies: Sequence[Literal["main", "cross", "parts", "all"]] = ("main",)
    estimators: Sequence[Estimator] = ()
    more: Mapping[str, object] = field(default_factory=dict)
    made_by: str = ""
    function: str = "table"
    short_models: bool = False
    of_subset: bool = False
    model: str = ""

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.model}" if self.model else self.kind

    @property
    def inputs(self) -> Inputs:
        prefix = "subset_" if self.of_subset else ""
        return {name: analysed(prefix + name) for name in self.analyses}

    @property
    def module(self) -> str:
        return f"trace_workflow.tables.{self.made_by or self.kind}"


@dataclass(frozen=True)
class Family:
    """A family of estimators, scored from what `answers(**inputs, **settings)` of its module reads.

    `scores` are the ids of its estimators in the run. With `by_task`, the task's slug is a setting.
    `custom_code` is the hash of the user's file that defines a custom family.
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
    """The file of an analysis.

    >>> analysed("averages")
    '<results>/analyses/averages.parquet'
    """
    return f"<results>/analyses/{name}.parquet"
