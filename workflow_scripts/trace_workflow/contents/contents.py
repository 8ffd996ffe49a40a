"""The plan of a run: all results from the files of its (model, task) pairs.

>>> PLAN = plan(load_run(value, "config/mine.yaml", root))  # doctest: +SKIP
>>> PLAN.analyses["averages"].inputs  # doctest: +SKIP
{'measured': '<results>/metrics.parquet'}
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from trace_workflow.config.custom import custom_code
from trace_workflow.config.paper import read, shared
from trace_workflow.config.run import Run
from trace_workflow.contents import comparison, entries, main_study
from trace_workflow.tables.wording import count, fill_caption, join_names
from tracecal.estimators.estimator import Estimator
from tracecal.estimators.registry import CUSTOM


def _family(name: str, run: Run) -> entries.Family:
    """A family with the files that it reads: the needs of its first estimator with a score."""
    config, selection = run.config, run.selection
    first, *_ = selection.available.where(lambda e: e.family == name).scored
    scores = selection.chosen.where(lambda e: e.family == name).scored.ids
    on_subset = selection.on_subset_alone(first)
    rows = f"<results>/{entries.SUBSETS}/{{task}}.parquet" if on_subset else entries.QUESTIONS
    if first.supervised:
        learned = f"<results>/work/learned/scores/{name}/{{model}}.parquet"
        return entries.Family(name, scores, {"learned": learned, "task": rows}, by_task=True)
    inputs = _inputs(first, rows, config.sampling.equivalence == "nli")
    if name.startswith(CUSTOM):
        file = config.custom_estimators
        settings = {"file": file, "score": first.id}
        return entries.Family(
            name, scores, inputs, settings, custom_code=custom_code(file, first.id)
        )
    settings = {
        "samples": {"equivalence": config.sampling.equivalence},
        "meanings": {"same_meaning": config.sampling.same_meaning},
    }
    of_needs = {k: v for need in first.needs for k, v in settings.get(need, {}).items()}
    return entries.Family(name, scores, inputs, of_needs)


def _inputs(estimator: Estimator, rows: str, compares_samples: bool) -> dict[str, str]:
    """The files that an estimator's family reads for a model and a task.

    A model compares samples only where the configuration asks for it (`compares_samples`).
    """
    traces = {"traces": "<results>/traces/{model}/{task}.arrow"}
    weights = {"weights": f"<results>/weights/{estimator.family}/{{model}}/{{task}}.arrow"}
    samples = {"samples": "<results>/samples/{model}/{task}.arrow"}
    if compares_samples:
        samples["comparisons"] = "<results>/comparisons/{model}/{task}.arrow"
    files = {
        # Samples are of evaluated rows alone.
        "traces": traces if "samples" in estimator.needs else traces | {"task": rows},
        "features": {"features": "<results>/features/{model}/{task}.parquet"},
        "beams": {"beams": "<results>/beams/{model}/{task}.arrow"},
        "similarity": weights,
        "importance": weights,
        "samples": samples,
        "meanings": {},
        "columns": {"task": rows},
        "asked": {"asked": f"<results>/asked/{estimator.family}/{{model}}/{{task}}.arrow"},
    }
    return {key: path for need in estimator.needs for key, path in files[need].items()}


Pairs = Collection[tuple[str, str]]


@dataclass(frozen=True)
class Plan:
    """The results of a run by name. Each entry names its inputs.

    `beside_paper` are the tables that a second table compares with the paper's; `as_printed` have
    the paper's rows and columns alone; `left_out` says which of a small run are not made.
    """

    run: Run
    families: Mapping[str, entries.Family]
    analyses: Mapping[str, entries.Analysis]
    tables: Mapping[str, entries.PlannedTable]
    figures: Mapping[str, entries.Figure]
    beside_paper: Sequence[str]
    as_printed: frozenset[str]
    left_out: str

    def path(self, pattern: str, **wildcards: str) -> str:
        """A path pattern of an entry, filled in for a job.

        Answers from files and parts of answers may lack some of a task's rows: `questions` is then
        the folder in which these are marked.
        """
        model, task = wildcards.get("model", ""), wildcards.get("task", "")
        may_lack = self.run.config.answered(model) or task in self.run.parents
        questions = f"work/answered/{model}" if may_lack else "tasks"
        parent = self.run.parents.get(task, "")
        return pattern.format(questions=questions, parent=parent, **wildcards)

    def inputs(self, result: entries.Result, pairs: Pairs, **wildcards: str) -> dict[str, object]:
        """The input paths of a job by name: a path, a list of paths, or a path for each of the
        `pairs` in a study.
        """

        def paths(pattern: str | Sequence[str] | entries.PerPair) -> str | list[str]:
            if isinstance(pattern, str):
                return self.path(pattern, **wildcards)
            if not isinstance(pattern, entries.PerPair):
                return [self.path(path, **wildcards) for path in pattern]
            return [
                self.path(pattern.pattern, model=model, task=task)
                for model, task in self.pairs_of_study(pattern.study, pairs)
            ]

        return {name: paths(pattern) for name, pattern in result.inputs.items()}

    def pairs_of_study(self, study: entries.Study, pairs: Pairs) -> list[list[str]]:
        """The `pairs` in a study, as plain values."""
        main, parents = self.run.config.study.main, self.run.parents
        broader = self.run.config.study.broader
        belongs = {
            "all": lambda model, task: True,
            "main": lambda model, task: model == main.model and task in main.tasks,
            "broader": lambda model, task: model in broader.models and task in main.tasks,
            "parts": lambda model, task: task in parents,
            "whole": lambda model, task: task not in parents,
        }[study]
        return [[model, task] for model, task in pairs if belongs(model, task)]

    def main_study(self, table: entries.PlannedTable) -> dict[str, object]:
        """The main study of the table's model."""
        main = self.run.study["main"]
        return main | {"model": table.model or main["model"]}

    def table_settings(self, name: str) -> dict[str, object]:
        """A table's settings: the labels of its models and tasks, its studies, and more.

        Models are in the order of the configuration. The tables of the cross-model study have short
        names, as in the paper.
        """
        run, table = self.run, self.tables[name]
        pairs = run.config.study.pairs()
        every_pair = {
            "models": sorted({model for model, _ in pairs}),
            "tasks": sorted({task for _, task in pairs}),
        }
        members = run.study | {"main": self.main_study(table), "all": every_pair}
        studies = {study: members[study] for study in table.studies if members[study]}
        models = {m for s in studies.values() for m in s.get("models", [s.get("model")])}
        tasks = sorted({task for study in studies.values() for task in study["tasks"]})
        model_labels = run.short_model_labels if table.short_models else run.model_labels
        task_labels = run.short_task_labels if [*studies] == ["cross"] else run.task_labels
        return {
            "models": {slug: label for slug, label in model_labels.items() if slug in models},
            "tasks": {slug: task_labels[slug] for slug in tasks},
            "studies": studies,
            "options": table.more,
        }

    def findings_settings(self) -> dict[str, object]:
        """The settings of the run's findings: the main comparison's, all labels, and the headline's
        guarantee.
        """
        settings = self.table_settings("main_comparison")
        headline = self.run.headline
        return settings | {
            "models": self.run.model_labels,
            "tasks": self.run.task_labels,
            "options": settings["options"]
            | {"headline": headline.model_dump() if headline else None}
            | {"remarks": [*filter(None, (self.left_out, self.run.unused))]},
        }

    def table_words(self, name: str, words: Mapping[str, str], pairs: Pairs) -> dict[str, str]:
        """A table's title and caption, made from `words` and the facts of the finished `pairs`.

        A table without additions to the paper's has no words about them.
        """
        run, table = self.run, self.tables[name]
        main, cross = self.main_study(table), run.study["cross"] or {"models": [], "tasks": []}

        def labels_of(tasks: Sequence[str], models: Sequence[str], labels: Mapping[str, str]):
            finished = {task for model, task in pairs if model in models}
            return join_names([labels[task] for task in sorted({*tasks} & finished)] or ["none"])

        n_tasks = sum(model == main["model"] and task in main["tasks"] for model, task in pairs)
        models = {model for model, _ in pairs if model in cross["models"]}
        baselines = [e for e in table.estimators if e.role == "baseline"]
        splits = count(run.config.splits.count, "random calibration/evaluation split")
        facts = {
            "model": run.model_labels[main["model"]],
            "tasks": labels_of(main["tasks"], [main["model"]], run.task_labels),
            "cross_tasks": labels_of(cross["tasks"], cross["models"], run.short_task_labels),
            "task_count": count(n_tasks, "task"),
            "model_count": count(len(models), "model"),
            "baseline_count": count(len(baselines), "baseline"),
            "mean": f"the mean over {splits}",
            "confidence": f"{run.config.risk_control.confidence:g}",
        }
        return fill_caption(words, facts, name in self.as_printed)

    @property
    def tables_of_models(self) -> dict[str, tuple[str, str]]:
        """Each table of another model than the first: its kind, and its model's label."""
        labels = self.run.model_labels
        return {
            name: (table.kind, labels[table.model])
            for name, table in self.tables.items()
            if table.model
        }


ENOUGH = 200  # evaluation rows of a task, below which most tables would show chance
OF_SMALL_RUNS = {"main_comparison", "risk_coverage", "robustness_panels", "model_landscape"}


def is_worthwhile(result: entries.PlannedTable | entries.Figure, run: Run) -> bool:
    """Whether a table or figure is made where each task has fewer than ENOUGH rows."""
    if isinstance(result, entries.Figure):
        return result.name in OF_SMALL_RUNS
    of_tasks = result.name == "cross_task_transfer" and len(run.config.study.main.tasks) > 1
    of_others = bool(result.studies) and "main" not in result.studies
    return result.kind in OF_SMALL_RUNS or result.of_subset or of_tasks or of_others


def plan(run: Run, questions: int | None = None) -> Plan:
    """The plan of a run, whose largest task of the main study has so many `questions`, where that
    is known.
    """
    results = [*comparison.results(run), *main_study.results(run)]

    def of(kind: type) -> dict:
        return {result.name: result for result in results if isinstance(result, kind)}

    tables, figures, paper = of(entries.PlannedTable), of(entries.Figure), read()
    left_out = ""
    if questions is not None and questions < ENOUGH and not run.config.study.all_tables:
        planned = len(tables), len(figures)
        tables, figures = (
            {name: result for name, result in results.items() if is_worthwhile(result, run)}
            for results in (tables, figures)
        )
        n_tables, n_figures = planned[0] - len(tables), planned[1] - len(figures)
        left_out = (
            f"{count(questions, 'question')}: {count(n_tables, 'table')} and "
            f"{count(n_figures, 'figure')} need {ENOUGH}; `study.all_tables: true` draws them."
        )
    family_names = dict.fromkeys(estimator.family for estimator in run.selection.available)
    models, tasks = list(run.model_labels), list(run.tasks)
    printed = {*paper, "trace_plus_features"} if run.config.tables.as_printed else ()
    return Plan(
        run=run,
        families={name: _family(name, run) for name in family_names},
        analyses=of(entries.Analysis),
        tables=tables,
        figures=figures,
        beside_paper=[name for name in tables if shared(paper.get(name, []), models, tasks)],
        left_out=left_out,
        as_printed=frozenset(name for name, table in tables.items() if table.kind in printed),
    )
