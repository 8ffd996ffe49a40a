"""The plan of a run: everything that it makes from its pairs' files."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from trace_workflow.config.paper import read, shared
from trace_workflow.config.selection import Run
from trace_workflow.plan import cascades, comparison, main_study, parts_study
from trace_workflow.plan.entries import (
    Analysis,
    Family,
    Figure,
    PerPair,
    Result,
    Study,
    Table,
)
from trace_workflow.plan.families import families
from trace_workflow.tables.captions import count, filled, listed
from tracecal.estimators.entry import entries

Pairs = Collection[tuple[str, str]]


@dataclass(frozen=True)
class Plan:
    """What a run makes, by name. Each entry says what it is made from.

    `transfer` is the analysis with a rule of its own, `beside` the tables that are also shown
    beside the paper's, `as_printed` those that have the paper's rows and columns alone.
    """

    run: Run
    families: Mapping[str, Family]
    analyses: Mapping[str, Analysis]
    tables: Mapping[str, Table]
    figures: Mapping[str, Figure]
    transfer: Result
    beside: Sequence[str]
    as_printed: frozenset[str]

    def path(self, pattern: str, **wildcards: str) -> str:
        """A path pattern of an entry, filled in for a job."""
        parent = self.run.parents.get(wildcards.get("task", ""), "")
        return pattern.format(questions=self._questions(**wildcards), parent=parent, **wildcards)

    def _questions(self, model: str = "", task: str = "", **_: str) -> str:
        """The folder of a task's rows, those without an answer of the model marked.

        Only answers from files, and parts of answers, may lack some.
        """
        some = self.run.config.answered(model) or task in self.run.parents
        return f"work/answered/{model}" if some else "tasks"

    def files(self, result: Result, finished: Pairs, **wildcards: str) -> dict[str, object]:
        """The paths that an entry is made from, by name, for a job: one path, several, or those of
        all `finished` pairs of a study.
        """

        def paths(given: str | Sequence[str] | PerPair) -> str | list[str]:
            if isinstance(given, str):
                return self.path(given, **wildcards)
            if not isinstance(given, PerPair):
                return [self.path(one, **wildcards) for one in given]
            return [
                self.path(given.pattern, model=model, task=task)
                for model, task in self.of_study(given.study, finished, result.sharing)
                if given.models is None or model in given.models
            ]

        return {name: paths(given) for name, given in result.inputs.items()}

    def of_study(self, study: Study, pairs: Pairs, sharing: Sequence[str] = ()) -> list[list[str]]:
        """The pairs that belong to a study, as plain values; with `sharing` those of these models,
        and of tasks that all of them have.
        """
        main, parents = self.run.config.study.main, self.run.parents
        belongs = {
            "all": lambda model, task: True,
            "main": lambda model, task: model == main.model and task in main.tasks,
            "parts": lambda model, task: task in parents,
            "whole": lambda model, task: task not in parents,
        }
        chosen = [pair for pair in pairs if pair[0] in sharing] if sharing else pairs
        own = [[model, task] for model, task in chosen if belongs[study](model, task)]
        models = Counter(task for _, task in own)
        return [pair for pair in own if models[pair[1]] >= len(sharing)]

    def settings(self, table: str) -> dict[str, object]:
        """A table's settings: the labels of its models and tasks, its studies, and more.

        Models are in the order of the configuration. The tables of the cross-model study have short
        names, as the paper's.
        """
        run, made = self.run, self.tables[table]
        pairs = run.config.study.pairs()
        every = {"models": sorted({m for m, _ in pairs}), "tasks": sorted({t for _, t in pairs})}
        known = run.study | {"all": every}
        studies = {name: known[name] for name in made.studies if known[name]}
        models = {m for s in studies.values() for m in s.get("models", [s.get("model")])}
        tasks = sorted({task for study in studies.values() for task in study["tasks"]})
        model_labels = run.short_model_labels if made.short_models else run.model_labels
        task_labels = run.short_task_labels if [*studies] == ["cross"] else run.task_labels
        return {
            "models": {slug: label for slug, label in model_labels.items() if slug in models},
            "tasks": {slug: task_labels[slug] for slug in tasks},
            "studies": studies,
            "more": made.more,
        }

    def findings(self) -> dict[str, object]:
        """The settings of the run's findings: the main comparison's, with all labels and the
        guarantee that they begin with.
        """
        settings = self.settings("main_comparison")
        headline = self.run.config.study.headline
        return settings | {
            "models": self.run.model_labels,
            "tasks": self.run.task_labels,
            "more": settings["more"] | {"headline": headline.model_dump() if headline else None},
        }

    def shown(self, table: str) -> list[dict[str, str]]:
        """A table's estimators, as plain values."""
        return entries(self.tables[table].estimators)

    def words(self, table: str, words: Mapping[str, str], finished: Pairs) -> dict[str, str]:
        """A table's title and caption, from `words`, with the facts of the `finished` pairs.

        Words about additions to the paper's table are left out where the additions are.
        """
        run = self.run
        main, cross = run.study["main"], run.study["cross"] or {"models": [], "tasks": []}

        def named(tasks: Sequence[str], models: Sequence[str], labels: Mapping[str, str]) -> str:
            done = {task for model, task in finished if model in models}
            return listed([labels[task] for task in sorted({*tasks} & done)] or ["none"])

        tasks = sum(model == main["model"] and task in main["tasks"] for model, task in finished)
        models = {model for model, _ in finished if model in cross["models"]}
        baselines = [e for e in self.tables[table].estimators if e.role == "baseline"]
        splits = count(run.config.splits.count, "random calibration/evaluation split")
        facts = {
            "model": run.model_labels[main["model"]],
            "tasks": named(main["tasks"], [main["model"]], run.task_labels),
            "cross_tasks": named(cross["tasks"], cross["models"], run.short_task_labels),
            "task_count": count(tasks, "task"),
            "model_count": count(len(models), "model"),
            "baseline_count": count(len(baselines), "baseline"),
            "mean": f"the mean over {splits}",
            "confidence": f"{run.config.risk_control.confidence:g}",
        }
        return filled(words, facts, table in self.as_printed)


def plan(run: Run) -> Plan:
    """The plan of a run. Raises `InputError` where the paper's numbers cannot be read."""
    studies = [comparison.results, main_study.results, cascades.results]
    results = [one for made in (*studies, parts_study.results_of_parts) for one in made(run)]

    def of(kind: type) -> dict:
        return {result.name: result for result in results if isinstance(result, kind)}

    tables, paper = of(Table), read()
    models, tasks = list(run.model_labels), list(run.tasks)
    beside = [name for name in tables if shared(paper.get(name, []), models, tasks)]
    printed = {*paper, "trace_plus_features"} if run.config.tables.as_printed else ()
    return Plan(
        run=run,
        families={family.name: family for family in families(run)},
        analyses=of(Analysis),
        tables=tables,
        figures=of(Figure),
        transfer=main_study.transfer(run),
        beside=beside,
        as_printed=frozenset(printed),
    )
