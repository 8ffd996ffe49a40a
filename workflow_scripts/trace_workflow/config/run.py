"""The run's configuration: one schema, validated when the workflow starts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import (
    Field,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from trace_workflow.config.custom import custom_rules
from trace_workflow.config.estimators import (
    Encoders,
    Lars,
    Probe,
    Sampling,
    SelfEvaluation,
)
from trace_workflow.config.models import Dtype, Model
from trace_workflow.config.tasks import TaskSpec, local_source, task_file
from tracecal.answers.settings import Reading
from tracecal.calibration.settings import Bootstrap, Calibration, RiskControl, Splits
from tracecal.errors import InputError, here
from tracecal.estimators.registry import ESTIMATORS, IDS, custom_estimators, of_columns
from tracecal.io.input_files import read_yaml
from tracecal.io.settings import Slug, Strict, parse, unknown


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
        description="false: no estimators that sample, ask again or learn for models that only "
        "this study uses; its tables do not show them",
    )


class Subset(Strict):
    """A subset of the main study's answers, for the estimators that cost most.

    These search beams, sample, ask again, read hidden states, or weight every token.
    """

    answers: PositiveInt = Field(
        description="size of the subset: seeded, of each task's evaluation rows"
    )


class PartsStudy(_OrderFree):
    """Parts of answers, such as fields or lines: tasks made of parts of other tasks' answers.

    No average of the other studies counts them: they are no further answers, and some estimators
    need more than a part has.
    """

    models: tuple[str, ...] = Field(description="slugs of some of 'models'")
    tasks: tuple[str, ...] = Field(description="slugs of tasks with 'source: {parts_of: ...}'")


class Cascade(Strict):
    """A small model whose least confident answers are put to a large one."""

    small: str = Field(description="slug of one of 'models'")
    large: str = Field(description="slug of another one")


class Headline(Strict):
    """The one guarantee that a run's findings begin with, fixed before any result is seen."""

    task: str = Field(description="slug of one of the main study's tasks")
    error_rate: float = Field(description="one of 'risk_control.error_rates'")


class Study(Strict):
    """Which models are compared on which tasks."""

    main: MainStudy
    cross: CrossStudy | None = None
    broader: Subset | None = Field(
        None,
        description="a subset of the answers for the estimators that cost most; null: every "
        "estimator is computed for all answers",
    )
    parts: PartsStudy | None = Field(
        None, description="null: only whole answers are judged; docs/guides/parts.md"
    )
    columns: dict[Slug, str] = Field(
        {},
        description="further number of answers from files (larger: trust more): its path in a row; "
        "docs/guides/judge.md",
    )
    named_baseline: str = Field(
        "seq_logp",
        description="the prespecified baseline that TRACE+ is compared with, named before any "
        "result is seen; an id of role 'baseline'",
    )
    headline: Headline | None = Field(
        None, description="null: the findings name no guarantee; its table has all"
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


# Which tasks may be made of parts of others' answers.


def require_parts(study: Study, tasks: Mapping[str, TaskSpec]) -> None:
    """Raise `InputError` where a task of parts is in a study of whole answers or the reverse, or
    where the answers that it names are not those of a task of the run.
    """
    main, cross = study.main, study.cross
    of_parts = study.parts.tasks if study.parts else ()
    whole = {*main.tasks, *(cross.tasks if cross else ())}
    for slug, task in tasks.items():
        parent = task.source.parts_of
        if parent is None and slug in of_parts:
            raise InputError(
                f"config: study.parts.tasks: {slug!r} is not made of parts of another task's "
                "answers (source: {parts_of: ...}); name it in another study."
            )
        if parent is not None and slug in whole:
            raise InputError(
                f"config: study: task {slug!r} is made of parts of answers, which are not further "
                "answers to average over; name it under study.parts instead."
            )
        if parent is not None and (parent not in tasks or tasks[parent].source.parts_of):
            known = [name for name, one in tasks.items() if one.source.parts_of is None]
            raise InputError(
                f"task {slug!r}: source: parts_of: {parent!r} is not a task of the run whose "
                f"answers are decoded or read; there are {', '.join(known)}."
            )


class DemoData(Strict):
    """Four task families made from public facts, and a corpus that states them."""

    corpus_examples: PositiveInt = Field(13000, description="training examples, all families")
    evaluation_rows: PositiveInt = Field(
        120, description="evaluation questions per family; fewer where its facts run out"
    )
    training_rows: PositiveInt = Field(60, description="rows of role 'training' per family")
    vocabulary: PositiveInt = Field(2000, description="tokens of the byte-level BPE")


class TaskEntry(Strict):
    """A task of the run: its file and what this run overrides in it."""

    slug: Slug = Field(description="names the task's files")
    file: str | None = Field(None, description="task file; null: config/tasks/<slug>.yaml")
    path: str | None = Field(
        None, description="local files instead of the file's source; may hold {split}, {language}"
    )
    limit: PositiveInt | None = Field(
        None, description="evaluation rows, a seeded subsample; null: as the task file says"
    )
    training_limit: int | None = Field(
        None, ge=0, description="rows of role 'training'; null: as the task file says"
    )


class Beams(Strict):
    width: int = Field(10, ge=2, description="beams per prompt, K in Flores et al. 2025")


class Audit(Strict):
    """The check of the traces: teacher-forced replay of a sample of answers."""

    answers: PositiveInt = Field(32, description="answers replayed per model and task")
    tolerance: dict[Dtype, PositiveFloat] = Field(
        {"float32": 1e-3, "bfloat16": 0.25, "float16": 0.05},
        description="largest deviation of surprisal and entropy (nats) and of tied logits",
    )


class Tables(Strict):
    """How the tables are printed; their CSVs hold all numbers either way."""

    as_printed: bool = Field(
        False,
        description="true: the paper's tables have its rows and columns only; false: with "
        "intervals, supported wins, right answers, definitions and further methods",
    )


class Explorer(Strict):
    """The page that shows answers one by one."""

    answers: PositiveInt = Field(
        10000,
        description="answers on the page; a larger run is sampled, equally by model and task",
    )


class Config(Strict):
    """A run. Unset keys take the defaults given here."""

    run: Slug = Field(description="results go to results/<run>/")
    seed: int = Field(2026, ge=0, description="of everything random: samples of rows, splits, …")
    world: DemoData | None = Field(
        None, description="demo data, made from public facts; 'train' and 'world' sources need it"
    )
    models: tuple[Model, ...]
    tasks: tuple[TaskEntry, ...]
    study: Study
    custom_estimators: str | None = Field(
        None, description="a Python file with custom estimators; see docs/guides/custom.md"
    )
    custom_rules: str | None = Field(
        None, description="a Python file with custom correctness rules; see docs/guides/custom.md"
    )
    estimators: tuple[str, ...] | None = Field(
        None, description="ids to run; null: all that the other settings allow"
    )
    beams: Beams = Beams()
    probe: Probe = Probe()
    lars: Lars = Lars()
    self_evaluation: SelfEvaluation = SelfEvaluation()
    sampling: Sampling = Sampling()
    encoders: Encoders = Encoders()
    audit: Audit = Audit()
    splits: Splits = Splits()
    calibration: Calibration = Calibration()
    risk_control: RiskControl = RiskControl()
    bootstrap: Bootstrap = Bootstrap()
    tables: Tables = Tables()
    explorer: Explorer = Explorer()

    @field_validator("models", "tasks")
    @classmethod
    def _distinct(cls, entries: tuple[Any, ...]) -> tuple[Any, ...]:
        if not entries:
            raise ValueError("is empty; name at least one")
        # Names that differ in case only are one folder on some file systems.
        keys = [entry.slug.lower() for entry in entries]
        for place, entry in enumerate(entries):
            if keys[place] in keys[:place]:
                raise ValueError(f"slug {entry.slug!r} is given twice; slugs must be distinct")
        return entries

    @field_validator("estimators")
    @classmethod
    def _known_estimators(
        cls, ids: tuple[str, ...] | None, info: ValidationInfo
    ) -> tuple[str, ...] | None:
        if ids is None:
            return None
        if not ids:
            raise ValueError("is empty; name at least one estimator, or null for all")
        study = info.data.get("study")
        columns = of_columns([*study.columns]) if study else []
        own = [*columns, *custom_estimators(info.data.get("custom_estimators"))]
        if wrong := unknown("estimator", ids, (*IDS, *(one.id for one in own))):
            raise ValueError(wrong)
        for estimator in (*ESTIMATORS, *columns):
            missing = [base for base in estimator.built_on if base not in ids]
            if estimator.id in ids and missing:
                raise ValueError(
                    f"{estimator.id!r} is built on {missing[0]!r}: add it, or leave both out"
                )
        return ids

    @model_validator(mode="after")
    def _consistent(self) -> "Config":
        models, tasks = ([entry.slug for entry in entries] for entries in (self.models, self.tasks))
        named = [("study.main.model", self.study.main.model, models)]
        named += [("study.main.tasks", task, tasks) for task in self.study.main.tasks]
        if self.study.cross:
            named += [("study.cross.models", model, models) for model in self.study.cross.models]
            named += [("study.cross.tasks", task, tasks) for task in self.study.cross.tasks]
        if self.study.parts:
            named += [("study.parts.models", model, models) for model in self.study.parts.models]
            named += [("study.parts.tasks", task, tasks) for task in self.study.parts.tasks]
        for place, pair in enumerate(self.study.cascades or ()):
            named += [(f"study.cascades[{place}].{key}", slug, models) for key, slug in pair]
        baselines = [entry.id for entry in ESTIMATORS if entry.role == "baseline"]
        named.append(("study.named_baseline", self.study.named_baseline, baselines))
        if headline := self.study.headline:
            rates = self.risk_control.error_rates
            named.append(("study.headline.task", headline.task, self.study.main.tasks))
            named.append(("study.headline.error_rate", headline.error_rate, rates))
        for key, value, known in named:
            if value not in known:
                listed = ", ".join(map(str, known))
                raise ValueError(f"{key}: {value!r} is not defined; there are {listed}")
        for pair in self.study.cascades or ():
            if not self.study.sharing(pair.small, pair.large):
                raise ValueError(
                    f"study.cascades: the studies ask {pair.small!r} and {pair.large!r} no common "
                    "task; name two models that share one"
                )
        for model in self.models:
            if model.source.train and self.world is None:
                raise ValueError(
                    f"model {model.slug!r} is trained here, which needs the key 'world'"
                )
            if model.dtype not in self.audit.tolerance:
                raise ValueError(
                    f"audit.tolerance names no deviation for {model.dtype}, the dtype of model "
                    f"{model.slug!r}"
                )
        if self.study.columns and not any(self.answered(model) for model, _ in self.study.pairs()):
            raise ValueError(
                "study.columns are read from files of answers, and no model of the studies has any "
                "(source: {answers: ...}); leave it out"
            )
        for name, encoder in self.encoders:
            if encoder and encoder.source and encoder.source.train and self.world is None:
                raise ValueError(f"encoders.{name} is trained here, which needs the key 'world'")
        return self

    def answered(self, model: str) -> bool:
        """Whether a model's answers come from files, so that only their traces exist."""
        return any(entry.slug == model and entry.source.answers for entry in self.models)

    def reading(self, model: str) -> Reading:
        """How a model's answers are read from files, with the columns that the study takes."""
        (source,) = (entry.source for entry in self.models if entry.slug == model)
        return source.read_as.model_copy(update={"also": self.study.columns})

    def cascades(self) -> list[tuple[str, str]]:
        """(small, large): the pairs that `study.cascades` names, or those of `escalations`.

        The larger of two models is the one whose tokens cost more, where all models have a price;
        then the one of more parameters, where those of all are known; then the later one.
        """
        if self.study.cascades is not None:
            return list(dict.fromkeys((pair.small, pair.large) for pair in self.study.cascades))
        prices = [one.price and (one.price.generated, one.price.prompt) for one in self.models]
        known = [own for own in (prices, [one.size for one in self.models]) if None not in own]
        ranked = sorted(
            range(len(self.models)), key=lambda place: (*(own[place] for own in known), place)
        )
        return self.study.escalations([self.models[place].slug for place in reversed(ranked)])


def load_config(value: dict[str, Any], where: str) -> Config:
    """Validate a configuration given as a mapping. Raises `InputError`."""
    return parse(Config, value, where)


def load_tasks(config: Config, root: Path) -> dict[str, TaskSpec]:
    """The task files that `config` names, with its overrides; `root` is the workflow's folder.

    Raises `InputError` naming the file and key.
    """
    tasks = {entry.slug: _load_task(entry, config, root) for entry in config.tasks}
    require_parts(config.study, tasks)
    return tasks


def _load_task(entry: TaskEntry, config: Config, root: Path) -> TaskSpec:
    path = task_file(entry.slug, entry.file, root)
    where = entry.file or f"config/tasks/{entry.slug}.yaml"
    if not path.exists():
        looked_for = where + (here(where) if entry.file else "")
        present = sorted(file.stem for file in (root / "config/tasks").glob("*.yaml"))
        raise InputError(
            f"task {entry.slug!r}: there is no task file {looked_for}; "
            f"write one, or use one of {', '.join(present)}."
        )
    value = read_yaml(path)
    spec = parse(TaskSpec, value, where)
    if entry.path is not None:
        where = f"task {entry.slug!r}, read from {entry.path}"
        source = local_source(value["source"], entry.path, trained=entry.training_limit != 0)
        spec = parse(TaskSpec, value | {"source": source}, where)
    if spec.source.world is not None and config.world is None:
        raise InputError(f"task {entry.slug!r} asks for the demo data: add the key 'world'.")
    if spec.custom_rules and config.custom_rules is None:
        raise InputError(
            f"{where}: correctness: 'custom.{spec.custom_rules[0]}' needs the key 'custom_rules' "
            "of the config, the file that defines it; see docs/guides/custom.md."
        )
    known = custom_rules(config.custom_rules) if spec.custom_rules else {}
    if absent := [rule for rule in spec.custom_rules if rule not in known]:
        raise InputError(
            f"{where}: correctness: {config.custom_rules}, the file of 'custom_rules', has no rule "
            f"{absent[0]!r}; it has {', '.join(known)}."
        )
    overrides = entry.model_dump(include={"limit", "training_limit"}, exclude_none=True)
    if overrides and spec.parts:
        raise InputError(
            f"task {entry.slug!r}: {min(overrides)!r} is not allowed, as its rows are those of "
            f"{spec.source.parts_of!r}; limit that task."
        )
    return spec.model_copy(update=overrides)
