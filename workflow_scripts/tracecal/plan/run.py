"""A validated configuration, and what several results need of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tracecal.config.run import Config, load_config, load_tasks
from tracecal.config.selection import choose, chosen_for, chosen_on_subset, costly
from tracecal.registry.estimators import IDS, REPRESENTATIVE, Estimator
from tracecal.tasks.spec import TaskSpec


@dataclass(frozen=True)
class Run:
    """A run: its configuration, its tasks, and the estimators that it computes.

    `left_out` says by id why an estimator is not computed.
    """

    config: Config
    tasks: Mapping[str, TaskSpec]
    chosen: list[Estimator]
    left_out: Mapping[str, str]

    @cached_property
    def study(self) -> dict[str, Any]:
        """The studies as plain values: 'main', and 'cross' or None."""
        return self.config.study.model_dump()

    @cached_property
    def studies(self) -> dict[str, dict[str, Any]]:
        """The models and tasks of each study."""
        keys = ("model", "models", "tasks")
        return {
            name: {key: members[key] for key in keys if key in members}
            for name, members in self.study.items()
            if members and "tasks" in members
        }

    @property
    def main(self) -> dict[str, dict[str, Any]]:
        """`studies` with the main study alone."""
        return {"main": self.studies["main"]}

    @cached_property
    def main_chosen(self) -> list[Estimator]:
        """The estimators that are computed for the main study's model."""
        return chosen_for(self.config.study.main.model, self.chosen, self.config)

    @cached_property
    def on_subset(self) -> list[Estimator]:
        """Those that are computed for a subset of the main study's answers, where there is one."""
        return chosen_on_subset(self.chosen, self.config)

    @cached_property
    def compared(self) -> list[Estimator]:
        """The baselines and TRACE, which comparisons of models show."""
        return [
            e
            for e in self.chosen
            if e.role in ("baseline", "trace") and not (self.config.study.broader and costly(e))
        ]

    @cached_property
    def main_compared(self) -> list[Estimator]:
        """Those of `compared` that are computed for the main study's model."""
        return [e for e in self.main_chosen if e.role in ("baseline", "trace")]

    @cached_property
    def custom(self) -> list[Estimator]:
        """The user's own estimators."""
        return [e for e in self.main_chosen if e.id not in IDS]

    @cached_property
    def representative(self) -> list[Estimator]:
        """The representative estimators of the main study's analyses, with the user's own."""
        return [e for e in self.main_chosen if e in self.custom or e.id in REPRESENTATIVE]

    @cached_property
    def missing_parts(self) -> dict[str, str]:
        """By task of parts of answers: what a part counts as that an answer lacks."""
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
    def short_task_labels(self) -> dict[str, str]:
        return {slug: task.short_label or task.label for slug, task in self.tasks.items()}


def load_run(value: dict[str, Any], where: str, root: Path) -> Run:
    """The run of a configuration given as a mapping; `where` names it, `root` is the workflow's.

    Raises `InputError`.
    """
    config = load_config(value, where)
    tasks = load_tasks(config, root)
    return Run(config, tasks, *choose(config, tasks))
