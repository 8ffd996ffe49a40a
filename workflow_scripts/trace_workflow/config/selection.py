"""The selection of estimators that a run computes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from trace_workflow.config.config import Config
from trace_workflow.config.estimator_list import EstimatorList, beyond_traces, costly
from trace_workflow.config.tasks import TaskSpec
from tracecal.errors import InputError
from tracecal.estimators import registry
from tracecal.estimators.custom import custom_estimators
from tracecal.estimators.estimator import Estimator


@dataclass(frozen=True)
class Selection:
    """The estimators that a run computes, for each kind of answers, and shows.

    Raises `InputError` where an estimator that the configuration names cannot be computed. Where
    the configuration names none, every estimator whose needs are met is chosen.
    """

    config: Config
    tasks: Mapping[str, TaskSpec]

    def __post_init__(self) -> None:
        if self.config.estimators is None:
            return
        if lack := self._lack(*self.chosen):
            raise InputError(f"config: {lack}.")
        for model, task in self.pairs:
            if self.tasks[task].source.parts_of and not self.computed(model, task):
                raise InputError(
                    f"config: 'estimators' names none that can be computed for {task!r}: parts of "
                    "answers have traces and labels alone; name another estimator."
                )
            if not self.computed(model):
                raise InputError(
                    "config: 'estimators' names none that is computed for model "
                    f"{model!r}: name it in 'study.broader.models' (without 'study.cross.broader: "
                    "false'), or name another estimator."
                )

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """The (model, task) pairs that the studies need, sorted."""
        return self.config.study.pairs()

    @cached_property
    def available(self) -> EstimatorList:
        """The registry's estimators, labelled by their configured variants, and the user's own."""
        sampling = self.config.sampling
        varied = (sampling.equivalence, sampling.same_meaning) == ("nli", "no_contradiction")
        variant = " (no contradiction)" if varied else ""
        registered = [
            replace(e, label=e.label + variant) if "meanings" in e.needs else e
            for e in registry.ESTIMATORS
        ]
        columns = registry.column_estimators([*self.config.study.columns])
        custom = custom_estimators(self.config.custom_estimators)
        if twice := [e.id for e in custom if e.id in self.config.study.columns]:
            raise InputError(
                f"config: {twice[0]!r} is a column and a custom estimator; rename one."
            )
        return EstimatorList([*registered, *columns, *custom])

    @cached_property
    def left_out(self) -> dict[str, str]:
        """Why an estimator is not chosen, by its id, where the configuration names none."""
        reasons: dict[str, str] = {}
        if self.config.estimators is not None:
            return reasons
        all_from_files = all(self.config.answered(model) for model, _ in self.pairs)
        for e in self.available:
            if bases := [name for name in e.built_on if name in reasons]:
                reasons[e.id] = f"{bases[0]} is left out"
            elif all_from_files and (need := beyond_traces(e)):
                reasons[e.id] = f"it needs {need}, and all answers come from files"
            elif lack := self._lack(e):
                reasons[e.id] = lack
        return reasons

    @cached_property
    def chosen(self) -> EstimatorList:
        """The estimators that are computed for any answers."""
        if self.config.estimators is not None:
            return self.available.with_ids(self.config.estimators)
        return self.available.where(lambda e: e.id not in self.left_out)

    @cached_property
    def warnings(self) -> list[str]:
        """A sentence on each estimator that a run leaves out, for all or some answers."""
        ids_by_need: dict[str, list[str]] = {}
        for e in self.chosen:
            if need := beyond_traces(e):
                ids_by_need.setdefault(need, []).append(e.id)
        missing = "; ".join(f"{', '.join(ids)} (need {need})" for need, ids in ids_by_need.items())
        columns = ", ".join(self.chosen.where(lambda e: registry.COLUMNS in e.needs).ids)
        models = sorted({model for model, _ in self.pairs})
        tasks = self.config.study.parts.tasks if self.config.study.parts else ()
        parts = [f"{task} is made of parts of answers" for task in tasks]
        files = [f"{m}'s answers come from files" for m in models if self.config.answered(m)]
        decoded = [f"{m}'s answers are decoded here" for m in models if not self.config.answered(m)]
        lacking = decoded + parts
        return [
            *(f"{name} is left out: {reason}" for name, reason in self.left_out.items()),
            *(f"{why}, which do not give {missing}" for why in files + parts if missing),
            *(f"{why}, without the study's columns: no {columns}" for why in lacking if columns),
        ]

    def users(self, encoder: str, estimators: Sequence[Estimator] | None = None) -> list[str]:
        """The ids of `estimators`, by default the chosen ones, that use an encoder: `lars` or a key
        of `encoders`.
        """
        by_samples = encoder == "entailment" and self.config.sampling.equivalence == "nli"
        need = "samples" if by_samples else encoder
        using = self.chosen if estimators is None else estimators
        return [e.id for e in using if need in (e.id, *e.needs)]

    def computed(self, model: str, task: str | None = None) -> EstimatorList:
        """The estimators for a model's answers to `task`; None: to any task of whole answers."""
        return self._allowed(model, task).where(lambda e: not self.on_subset_alone(e))

    def on_subset_alone(self, estimator: Estimator) -> bool:
        """Whether an estimator is computed for a subset of the main study's answers, no others."""
        return self.config.study.broader.answers is not None and costly(estimator)

    def on_subset(self, model: str | None = None) -> EstimatorList:
        """The estimators for a subset of a model's answers, by default the main study's first;
        empty without a subset.
        """
        study = self.config.study
        allowed = self._allowed(model or study.main.model)
        return allowed if study.broader.answers else EstimatorList()

    @cached_property
    def main(self) -> EstimatorList:
        """The estimators that are computed for the main study's first model."""
        return self.computed(self.config.study.main.model)

    @cached_property
    def compared(self) -> EstimatorList:
        """The baselines, own scores and TRACE, which comparisons of models show."""
        return self.chosen.where(
            lambda e: e.role in ("baseline", "own", "trace") and not self.on_subset_alone(e)
        )

    def compared_of(self, model: str = "") -> EstimatorList:
        """The `compared` estimators computed for a model, by default the main study's first."""
        return self.computed(model or self.config.study.main.model).with_ids(self.compared.ids)

    @cached_property
    def beyond_paper(self) -> EstimatorList:
        """The fits on logarithms, which `few_labels` compares with TRACE+."""
        return self.chosen.with_ids([*registry.ON_LOGARITHMS, registry.LOG_RIDGE_ALSO.id])

    @cached_property
    def custom(self) -> EstimatorList:
        """The user's own estimators and columns."""
        return self.compared.where(lambda e: e.role == "own")

    @cached_property
    def representative(self) -> EstimatorList:
        """The representative estimators of the main study's analyses, with the user's own."""
        return self.main.with_ids([*registry.REPRESENTATIVE, *self.custom.ids])

    @cached_property
    def of_parts(self) -> EstimatorList:
        """The estimators for parts of answers, which have traces and labels alone."""
        estimators = self.chosen.with_ids([*self.compared.ids, *self.beyond_paper.ids])
        return estimators.where(lambda e: not beyond_traces(e) and registry.COLUMNS not in e.needs)

    def _allowed(self, model: str, task: str | None = None) -> EstimatorList:
        """The estimators that a model's answers to a task allow, at any cost."""
        broader, traces = self._wants_broader(model), self._traces_alone(model, task)
        costs = model in self.config.study.broader.models
        columns = self.config.answered(model) and not self._of_parts(task)
        return self.chosen.where(
            lambda e: (
                (e.role != "broader" or broader)
                and (costs or not (costly(e) or e.supervised))
                and not (traces and beyond_traces(e))
                and (columns or registry.COLUMNS not in e.needs)
            )
        )

    def _wants_broader(self, model: str) -> bool:
        """Whether methods of role 'broader' are computed for a model of the studies."""
        study = self.config.study
        return model in study.main.models or study.cross is None or study.cross.broader

    def _traces_alone(self, model: str, task: str | None) -> bool:
        """Whether answers have nothing beyond traces: answers from files, parts of answers, and
        answers that serve their parts alone.
        """
        if task is None or self.config.answered(model):
            return self.config.answered(model)
        return (model, task) not in self.pairs or self._of_parts(task)

    def _of_parts(self, task: str | None) -> bool:
        """Whether a task is made of parts of answers; None stands for tasks of whole answers."""
        return task is not None and self.tasks[task].source.parts_of is not None

    def _lack(self, *estimators: Estimator) -> str:
        """The encoder or training rows that the configuration lacks for estimators; '' if none."""
        config = self.config
        for name, encoder in config.encoders:
            if encoder is None and (users := self.users(name, estimators)):
                hint = ", or 'sampling.equivalence: exact'" if name == "entailment" else ""
                return (
                    f"{' and '.join(users)} need{'s' if len(users) == 1 else ''} encoders.{name}, "
                    f"which is not set; set it{hint}, or list 'estimators' without what needs it"
                )
        trained = ["lars"] if config.lars.encoder.trained else []
        learning = [e.id for e in estimators if e.supervised and e.id not in trained]
        for model, tasks in self._learned_from.items() if learning else ():
            if not any(self.tasks[task].has_training_rows for task in tasks):
                return (
                    f"{' and '.join(learning)} must be trained on rows of role 'training', and no "
                    f"task of model {model!r} ({', '.join(tasks)}) has any; give one of them "
                    "'training_split' and 'training_limit', or leave them out of 'estimators'"
                )
        return ""

    @cached_property
    def _learned_from(self) -> dict[str, list[str]]:
        """The tasks of each model for which supervised estimators are computed."""
        tasks: dict[str, list[str]] = {}
        for model, task in self.pairs:
            costs = model in self.config.study.broader.models and self._wants_broader(model)
            if costs and not self._traces_alone(model, task):
                tasks.setdefault(model, []).append(task)
        return tasks
