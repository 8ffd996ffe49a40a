"""A run: a validated configuration with its tasks and estimators, and what follows from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from trace_workflow.config.config import Config, TaskEntry, load_config
from trace_workflow.config.custom import custom_rules
from trace_workflow.config.selection import Selection
from trace_workflow.config.study import Headline, require_parts
from trace_workflow.config.tasks import TaskSpec, local_source, task_file
from tracecal.errors import InputError, here
from tracecal.io.input_files import read_yaml
from tracecal.io.settings import parse, require_visible

USUAL_RATE = 0.2  # a target error rate that a run may fix beforehand


@dataclass(frozen=True)
class Run:
    """A run: its configuration, its tasks, and the selection of its estimators."""

    config: Config
    tasks: Mapping[str, TaskSpec]
    selection: Selection

    @cached_property
    def resolved(self) -> str:
        """Every setting, defaults filled in, as YAML in a canonical order."""
        value = self.config.model_dump(mode="json")
        value["models"] = sorted(value["models"], key=lambda model: model["slug"])
        value["tasks"] = {
            slug: self.tasks[slug].model_dump(mode="json", by_alias=True)
            for slug in sorted(self.tasks)
        }
        value["estimators"] = self.selection.chosen.ids
        return yaml.safe_dump(value, sort_keys=True, allow_unicode=True)

    @cached_property
    def study(self) -> dict[str, Any]:
        """The studies as plain values: 'main' of its first model, and 'cross' or None."""
        study = self.config.study
        return study.model_dump() | {"main": {"model": study.main.model, "tasks": study.main.tasks}}

    @cached_property
    def studies(self) -> dict[str, dict[str, Any]]:
        """The models and tasks of each study, of the main one all of its models."""
        main, studies = self.config.study.main, {"main": self.study["main"]}
        if len(main.models) > 1:
            studies["main"] = {"models": tuple(sorted(main.models)), "tasks": main.tasks}
        for name in ("cross", "parts"):
            if members := self.study[name]:
                studies[name] = {key: members[key] for key in ("models", "tasks")}
        return studies

    @property
    def main(self) -> dict[str, dict[str, Any]]:
        """The main study of its first model alone."""
        return {"main": self.study["main"]}

    @property
    def broader(self) -> dict[str, dict[str, Any]]:
        """The main study of the models of `study.broader`."""
        models, main = self.config.study.broader.models, self.study["main"]
        return {"main": main if len(models) == 1 else {"models": models, "tasks": main["tasks"]}}

    @cached_property
    def parents(self) -> dict[str, str]:
        """Task of parts of answers -> the task whose answers these are parts of."""
        sources = {slug: task.source.parts_of for slug, task in self.tasks.items()}
        return {slug: parent for slug, parent in sources.items() if parent}

    @cached_property
    def unused(self) -> str:
        """A sentence on the models, tasks and scores that no study uses; '' if there are none."""
        pairs, selection = self.config.study.pairs(), self.selection
        models, tasks = ({*names} for names in zip(*pairs, strict=True))
        tasks |= {self.parents[task] for task in tasks & {*self.parents}}
        own_scores = selection.available.where(lambda e: e.role == "own")
        scores = {*selection.chosen.ids, *selection.left_out}
        unused = [
            *(f"model {slug}" for slug in self.model_labels if slug not in models),
            *(f"task {slug}" for slug in self.tasks if slug not in tasks),
            *(f"score {name}" for name in own_scores.ids if name not in scores),
        ]
        return f"configured and not used: {', '.join(unused)}." if unused else ""

    @cached_property
    def missing_parts(self) -> dict[str, str]:
        """Task of parts of answers -> what a part counts as that an answer lacks."""
        tasks = self.config.study.parts.tasks if self.config.study.parts else ()
        return {task: self.tasks[task].parts.missing for task in tasks}

    @property
    def bootstrap(self) -> list[float]:
        """Seed, resamples and level: one bootstrap for all intervals."""
        return [self.config.seed, self.config.bootstrap.resamples, self.config.bootstrap.level]

    @cached_property
    def model_labels(self) -> dict[str, str]:
        return {model.slug: model.name for model in self.config.models}

    @cached_property
    def short_model_labels(self) -> dict[str, str]:
        return {model.slug: model.short_label or model.name for model in self.config.models}

    @cached_property
    def task_labels(self) -> dict[str, str]:
        return {slug: self.tasks[slug].label for slug in sorted(self.tasks)}

    @cached_property
    def headline(self) -> Headline | None:
        """The guarantee that findings begin with: the study's, or that of its single task, at the
        error rate nearest to `USUAL_RATE`.
        """
        study, rates = self.config.study, self.config.risk_control.error_rates
        if study.headline or len(study.main.tasks) > 1:
            return study.headline
        rate = min(rates, key=lambda rate: (abs(rate - USUAL_RATE), rate))
        return Headline(task=study.main.tasks[0], error_rate=rate)

    @cached_property
    def explored_tasks(self) -> dict[str, str]:
        """The tasks' labels as the explorer lists them: the headline's first, which it opens on."""
        first = self.headline.task if self.headline else None
        return dict(sorted(self.task_labels.items(), key=lambda item: item[0] != first))

    @cached_property
    def short_task_labels(self) -> dict[str, str]:
        return {slug: task.short_label or task.label for slug, task in self.tasks.items()}


def load_run(value: dict[str, Any], where: str, root: Path) -> Run:
    """The run of a configuration, given as a mapping; `where` names the configuration in errors,
    `root` is the workflow's folder. Raises `InputError`.
    """
    config = load_config(value, where)
    tasks = load_tasks(config, root)
    return Run(config, tasks, Selection(config, tasks))


def load_tasks(config: Config, root: Path) -> dict[str, TaskSpec]:
    """The task files that `config` names, with its overrides; `root` is the workflow's folder.

    Raises `InputError` with the file and key.
    """
    tasks = {entry.slug: _load_task(entry, config, root) for entry in config.tasks}
    require_parts(config.study, tasks)
    return tasks


def _load_task(entry: TaskEntry, config: Config, root: Path) -> TaskSpec:
    path = task_file(entry.slug, entry.file, root)
    where = entry.file or f"config/tasks/{entry.slug}.yaml"
    if not path.exists():
        missing = where + (here(where) if entry.file else "")
        present = sorted(file.stem for file in (root / "config/tasks").glob("*.yaml"))
        raise InputError(
            f"task {entry.slug!r}: there is no task file {missing}; "
            f"write one, or use one of {', '.join(present)}."
        )
    value = read_yaml(path)
    require_visible(value, where)
    spec = parse(TaskSpec, value, where)
    if entry.path is not None:
        where = f"task {entry.slug!r}, read from {entry.path}"
        source = local_source(value["source"], entry.path, trained=entry.training_limit != 0)
        spec = parse(TaskSpec, value | {"source": source}, where)
    if spec.custom_rules and config.custom_rules is None:
        raise InputError(
            f"{where}: correctness: 'custom.{spec.custom_rules[0]}' needs the key 'custom_rules' "
            "of the config, the file that defines it; see docs/guides/extend.md."
        )
    rules = custom_rules(config.custom_rules) if spec.custom_rules else {}
    if absent := [rule for rule in spec.custom_rules if rule not in rules]:
        raise InputError(
            f"{where}: correctness: {config.custom_rules}, the file of 'custom_rules', has no rule "
            f"{absent[0]!r}; it has {', '.join(rules)}."
        )
    overrides = entry.model_dump(include={"limit", "training_limit"}, exclude_none=True)
    if overrides and spec.parts:
        raise InputError(
            f"task {entry.slug!r}: {min(overrides)!r} is not allowed, as its rows are those of "
            f"{spec.source.parts_of!r}; limit that task."
        )
    return spec.model_copy(update=overrides)
