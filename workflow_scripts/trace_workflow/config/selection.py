"""The estimators that a run computes, and a validated configuration with what follows from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from trace_workflow.config.estimators import require_encoders, require_training_rows
from trace_workflow.config.run import Config, load_config, load_tasks
from trace_workflow.config.tasks import TaskSpec
from tracecal.errors import InputError
from tracecal.estimators.custom import custom_estimators
from tracecal.estimators.entry import Estimator
from tracecal.estimators.registry import ESTIMATORS, IDS, ON_LOGARITHMS, REPRESENTATIVE

# What to call the artefacts that estimators need, where their names do not say it.
ARTEFACT_NAMES = {
    "asked": "answers to further questions",
    "hidden": "hidden states",
    "weights": "encoders",
}
# What takes another pass of the model, or more. TokenSAR's encoder reads an answer once a token.
COSTLY_NEEDS = frozenset({"beams", "samples", "asked", "hidden"})
COSTLY_FAMILY = "token_sar"


def choose(config: Config, tasks: Mapping[str, TaskSpec]) -> tuple[list[Estimator], dict[str, str]]:
    """The chosen estimators in the registry's order, and why each of the others is left out.

    Raises `InputError` where an estimator that the configuration names cannot be computed. Where
    it names none, every estimator whose needs are met is chosen.
    """
    registered = [_labelled(estimator, config) for estimator in ESTIMATORS]
    available = [*registered, *custom_estimators(config.custom_estimators)]
    if config.estimators is not None:
        chosen = [estimator for estimator in available if estimator.id in config.estimators]
        require_training_rows(chosen, _broader_pairs(config), tasks, config.lars)
        for model, task in config.study.pairs():
            if config.of_parts(task) and not chosen_for(model, chosen, config, task):
                raise InputError(
                    f"config: 'estimators' names none that can be computed for {task!r}: parts of "
                    "answers have traces and labels alone; name another estimator."
                )
            if not chosen_for(model, chosen, config):
                raise InputError(
                    "config: 'estimators' names methods of other families alone, and "
                    f"'study.cross.broader: false' computes none for model {model!r}; set it to "
                    "true, or name another estimator."
                )
        return chosen, {}
    left_out: dict[str, str] = {}
    for estimator in available:
        bases = [name for name in estimator.built_on if name in left_out]
        if reason := f"{bases[0]} is left out" if bases else _lack(estimator, config, tasks):
            left_out[estimator.id] = reason
    return [estimator for estimator in available if estimator.id not in left_out], left_out


def _labelled(estimator: Estimator, config: Config) -> Estimator:
    """The estimator under a label that names the variant of it that is configured."""
    sampling = config.sampling
    varied = (sampling.equivalence, sampling.same_meaning) == ("nli", "no_contradiction")
    if estimator.id == "semantic_entropy" and varied:
        return replace(estimator, label="Semantic Entropy (no contradiction)")
    return estimator


def chosen_for(
    model: str, chosen: Sequence[Estimator], config: Config, task: str | None = None
) -> list[Estimator]:
    """Those of the run's estimators that are computed for one model of its studies, on one `task`;
    where that is null, on tasks of whole answers.
    """
    wants_broader = config.wants_broader(model)
    answered = config.answered(model) if task is None else config.only_traces(model, task)
    return [
        estimator
        for estimator in chosen
        if (estimator.role != "broader" or wants_broader)
        and (not answered or not beyond_traces(estimator))
        and not (config.study.broader and costly(estimator))
    ]


def chosen_on_subset(chosen: Sequence[Estimator], config: Config) -> list[Estimator]:
    """Those that the main study's model is compared with on a subset of its answers."""
    whole = config.model_copy(update={"study": config.study.model_copy(update={"broader": None})})
    return chosen_for(config.study.main.model, chosen, whole) if config.study.broader else []


def costly(estimator: Estimator) -> bool:
    """Whether a run with `study.broader` computes an estimator on the subset alone."""
    return any(
        not COSTLY_NEEDS.isdisjoint(entry.needs) or entry.family == COSTLY_FAMILY
        for entry in _with_bases(estimator)
    )


def _with_bases(estimator: Estimator) -> list[Estimator]:
    by_id = {entry.id: entry for entry in ESTIMATORS}
    return [estimator, *(by_id[name] for name in estimator.built_on)]


def beyond_traces(estimator: Estimator) -> str:
    """What an estimator needs beyond traces and labels; empty if nothing."""
    for entry in _with_bases(estimator):
        if entry.supervised:
            return "labelled training answers"
        if more := [need for need in entry.needs if need not in ("traces", "features", "labels")]:
            return ARTEFACT_NAMES.get(more[0], more[0])
    return ""


def missing_from_files(config: Config, chosen: Sequence[Estimator]) -> dict[str, str]:
    """By model whose answers come from files: the estimators not computed for it, and why."""
    models = {model for model, _ in config.study.pairs() if config.answered(model)}
    reasons = _reasons(chosen)
    return dict.fromkeys(sorted(models), reasons) if reasons else {}


def missing_from_parts(config: Config, chosen: Sequence[Estimator]) -> dict[str, str]:
    """By task of parts of answers: the estimators not computed for it, and why."""
    reasons = _reasons(chosen)
    tasks = config.study.parts.tasks if config.study.parts else ()
    return dict.fromkeys(tasks, reasons) if reasons else {}


def _reasons(chosen: Sequence[Estimator]) -> str:
    """The estimators that traces are not enough for, by what they need."""
    reasons: dict[str, list[str]] = {}
    for estimator in chosen:
        if needed := beyond_traces(estimator):
            reasons.setdefault(needed, []).append(estimator.id)
    return "; ".join(f"{', '.join(ids)} (need {needed})" for needed, ids in reasons.items())


def _broader_pairs(config: Config) -> list[tuple[str, str]]:
    """The (model, task) pairs for which all methods of role 'broader' are computed."""
    return [
        (model, task)
        for model, task in config.study.pairs()
        if config.wants_broader(model) and not config.only_traces(model, task)
    ]


def _lack(estimator: Estimator, config: Config, tasks: Mapping[str, TaskSpec]) -> str:
    """What the configuration lacks for an estimator; empty if nothing."""
    if (needed := beyond_traces(estimator)) and all(
        config.answered(m) for m, _ in config.study.pairs()
    ):
        return f"it needs {needed}, and all answers come from files"
    try:
        require_encoders(config.encoders, config.sampling, [estimator.id], config.world is not None)
        require_training_rows([estimator], _broader_pairs(config), tasks, config.lars)
    except ValueError as error:
        return str(error)
    return ""


# A validated configuration, and what several results need of it.


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
    def beyond_paper(self) -> list[Estimator]:
        """The fits on logarithms, which tables compare with TRACE+."""
        return [e for e in self.chosen if e.id in ON_LOGARITHMS]

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
