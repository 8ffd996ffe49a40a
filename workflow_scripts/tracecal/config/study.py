"""Which models and tasks are compared."""

from collections.abc import Sequence

from pydantic import Field, PositiveInt, field_validator

from tracecal.inputs.schema import Strict


class _OrderFree(Strict):
    """Lists whose order has no meaning: tables follow the order of the key `models`."""

    @field_validator("models", "tasks", check_fields=False)
    @classmethod
    def _sorted(cls, slugs: tuple[str, ...]) -> tuple[str, ...]:
        if not slugs:
            raise ValueError("is empty; name at least one")
        return tuple(sorted(set(slugs)))


class MainStudy(_OrderFree):
    """The main comparison: every estimator on every task of one model."""

    model: str = Field(description="slug of one of 'models'")
    tasks: tuple[str, ...] = Field(description="slugs of some of 'tasks'")


class CrossStudy(_OrderFree):
    """The cross-model study: averages over `tasks` for each of `models`."""

    models: tuple[str, ...] = Field(description="slugs of some of 'models'")
    tasks: tuple[str, ...] = Field(description="slugs of some of 'tasks'")
    broader: bool = Field(
        True,
        description="false: skip 'broader' methods for models that only this study uses; its "
        "tables do not show them",
    )


class BroaderStudy(Strict):
    """The main study's model on some of its answers, with the estimators that cost most.

    These search beams, sample, ask again, read hidden states, or weigh every token.
    """

    answers: PositiveInt = Field(description="a seeded subset of each task's evaluation rows")


class PartsStudy(_OrderFree):
    """Parts of answers, such as fields or lines: tasks made of parts of other tasks' answers.

    They stand apart, as they are not further answers and some estimators need more than a part has:
    no average of the other studies counts them.
    """

    models: tuple[str, ...] = Field(description="slugs of some of 'models'")
    tasks: tuple[str, ...] = Field(description="slugs of tasks with 'source: {parts_of: ...}'")


class Cascade(Strict):
    """A small model whose least confident answers are put to a large one."""

    small: str = Field(description="slug of one of 'models'")
    large: str = Field(description="slug of another one")


class Study(Strict):
    """Which models are compared on which tasks."""

    main: MainStudy
    cross: CrossStudy | None = None
    broader: BroaderStudy | None = Field(
        None, description="null: every estimator is computed for all answers"
    )
    parts: PartsStudy | None = Field(
        None, description="null: only whole answers are judged; docs/parts.md"
    )
    named_baseline: str = Field(
        "seq_logp",
        description="the baseline that TRACE+ is compared with, chosen before any result is seen; "
        "an id of role 'baseline'",
    )
    cascades: tuple[Cascade, ...] | None = Field(
        None,
        description="pairs that share tasks; null: from each model to the largest one that shares "
        "a task with it; []: none",
    )

    def pairs(self) -> list[tuple[str, str]]:
        """The (model, task) pairs that the studies need, sorted."""
        pairs = self._of_whole_answers()
        if self.parts:
            pairs |= {(m, t) for m in self.parts.models for t in self.parts.tasks}
        return sorted(pairs)

    def _of_whole_answers(self) -> set[tuple[str, str]]:
        pairs = {(self.main.model, task) for task in self.main.tasks}
        if self.cross:
            pairs |= {(m, t) for m in self.cross.models for t in self.cross.tasks}
        return pairs

    def sharing(self, small: str, large: str) -> bool:
        """Whether they are two models that share a task of the studies."""
        pairs = self._of_whole_answers()
        shared = ((large, task) in pairs for model, task in pairs if model == small)
        return small != large and any(shared)

    def escalations(self, by_size: Sequence[str]) -> list[tuple[str, str]]:
        """From each model to the largest one that shares a task with it; (small, large), sorted.

        `by_size` are the models from the largest to the smallest. Each model has one pair, or none
        where no larger one shares a task.
        """
        tasks: dict[str, set[str]] = {}
        for model, task in self._of_whole_answers():
            tasks.setdefault(model, set()).add(task)
        ranked = [model for model in by_size if model in tasks]
        found = {}
        for place, small in enumerate(ranked):
            larger = (one for one in ranked[:place] if tasks[one] & tasks[small])
            if (large := next(larger, None)) is not None:
                found[small] = large
        return sorted(found.items())
