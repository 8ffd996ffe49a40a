"""The studies of a run: which models are compared on which tasks."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, PositiveInt, field_validator

from trace_workflow.config.tasks import TaskSpec
from tracecal.errors import InputError
from tracecal.io.settings import Slug, Strict


def _sorted(slugs: tuple[str, ...]) -> tuple[str, ...]:
    if not slugs:
        raise ValueError("is empty; name at least one")
    return tuple(sorted(set(slugs)))


# Slugs whose order has no meaning: tables follow `models`.
Members = Annotated[tuple[str, ...], AfterValidator(_sorted)]


class MainStudy(Strict):
    """The main comparison: every estimator on every task."""

    models: tuple[str, ...] = Field(
        (),
        description="slugs from 'models': all tables are of the first, main_comparison is of each; "
        "by default all models",
    )
    tasks: Members = Field(description="slugs from 'tasks'")

    @field_validator("models")
    @classmethod
    def _distinct(cls, models: tuple[str, ...]) -> tuple[str, ...]:
        for number, model in enumerate(models):
            if model in models[:number]:
                raise ValueError(f"{model!r} is given twice")
        return models

    @property
    def model(self) -> str:
        """The model that all tables of the study are of."""
        return self.models[0]


class CrossStudy(Strict):
    """The cross-model study: averages over `tasks` for each of `models`."""

    models: Members = Field(description="slugs from 'models'")
    tasks: Members = Field(description="slugs from 'tasks'")
    broader: bool = Field(
        True,
        description="false: models of this study alone skip estimators that sample, ask again or "
        "learn; the study's tables do not show them",
    )


class Broader(Strict):
    """What the costliest estimators are computed for, which search beams, sample, ask again, read
    hidden states, learn, or weight every token.
    """

    answers: PositiveInt | None = Field(
        None, description="evaluation rows drawn from each task, with the run's seed; null: all"
    )
    models: tuple[str, ...] = Field(
        (), description="slugs from 'models', beside the first of study.main.models"
    )


class PartsStudy(Strict):
    """Parts of answers, such as fields or lines, as tasks made of parts of other tasks' answers.

    No average of the other studies counts them: parts are no further answers, and some estimators
    need more than a part has.
    """

    models: Members = Field(description="slugs from 'models'")
    tasks: Members = Field(description="slugs of tasks with 'source: {parts_of: ...}'")


class Headline(Strict):
    """The guarantee that a run's findings begin with, fixed before any result is seen."""

    task: str = Field(description="slug of one of the main study's tasks")
    error_rate: float = Field(description="one of 'risk_control.error_rates'")


class Study(Strict):
    """Which models are compared on which tasks."""

    main: MainStudy
    cross: CrossStudy | None = Field(
        None,
        description="averages over 'tasks' for each of 'models'; null: of study.main's, if several",
    )
    broader: Broader = Broader()
    all_tables: bool = Field(
        False,
        description="true: make all tables and figures also where no task of study.main has 200 "
        "evaluation rows",
    )
    parts: PartsStudy | None = Field(
        None,
        description="judge parts of answers, too; null: only whole ones; see docs/guides/parts.md",
    )
    columns: dict[Slug, str] = Field(
        {},
        description="further scores in files of answers, larger where more confident: name and "
        "path in a row; see docs/guides/targets.md",
    )
    named_baseline: str = Field(
        "seq_logp",
        description="id of the baseline that TRACE+ is compared with, prespecified before any "
        "result is seen",
    )
    headline: Headline | None = Field(
        None,
        description="null: of a single task its guarantee at the error rate nearest to 0.2; of "
        "several tasks none, and the table has all",
    )

    def completed(self, models: Sequence[str]) -> "Study":
        """The study of a run with these `models`, where it does not name its own."""
        main = self.main.model_copy(update={"models": self.main.models or tuple(models)})
        cross = self.cross
        if cross is None and len(main.models) > 1:
            cross = CrossStudy(models=main.models, tasks=main.tasks)
        broader = self.broader.model_copy(
            update={"models": tuple(sorted({main.model, *self.broader.models}))}
        )
        return self.model_copy(update={"main": main, "cross": cross, "broader": broader})

    def pairs(self) -> list[tuple[str, str]]:
        """The (model, task) pairs that the studies need, sorted."""
        pairs = set()
        for study in filter(None, (self.main, self.cross, self.parts)):
            pairs |= {(model, task) for model in study.models for task in study.tasks}
        return sorted(pairs)


def require_parts(study: Study, tasks: Mapping[str, TaskSpec]) -> None:
    """Raise `InputError` where a task of parts is in a study of whole answers or the reverse, or
    where its answers are not those of a task of the run.
    """
    main, cross = study.main, study.cross
    tasks_of_parts = study.parts.tasks if study.parts else ()
    tasks_of_whole_answers = {*main.tasks, *(cross.tasks if cross else ())}
    for slug, task in tasks.items():
        parent = task.source.parts_of
        if parent is None and slug in tasks_of_parts:
            raise InputError(
                f"config: study.parts.tasks: {slug!r} is not made of parts of another task's "
                "answers (source: {parts_of: ...}); name it in another study."
            )
        if parent is not None and slug in tasks_of_whole_answers:
            raise InputError(
                f"config: study: task {slug!r} is made of parts of answers, which are not further "
                "answers to average over; name it under study.parts instead."
            )
        if parent is not None and (parent not in tasks or tasks[parent].source.parts_of):
            parents = [name for name, spec in tasks.items() if spec.source.parts_of is None]
            raise InputError(
                f"task {slug!r}: source: parts_of: {parent!r} is not a task of the run whose "
                f"answers are decoded or read; there are {', '.join(parents)}."
            )
