"""The run's configuration: one schema, validated when the workflow starts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import (
    Field,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from tracecal.config.calibration import Bootstrap, Calibration, RiskControl, Splits
from tracecal.config.encoders import Encoders, Sampling, require_encoders
from tracecal.config.model import Dtype, Model
from tracecal.config.self_evaluation import SelfEvaluation
from tracecal.config.supervised import Lars, Probe
from tracecal.errors import InputError, here
from tracecal.given import read_yaml
from tracecal.own import own_rules
from tracecal.own_estimators import own_estimators
from tracecal.registry import ESTIMATORS, IDS
from tracecal.schema import Slug, Strict, parse, unknown
from tracecal.tasks.rows import local_source
from tracecal.tasks.spec import TaskSpec, task_file


class World(Strict):
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


class Study(Strict):
    """Which models are compared on which tasks."""

    main: MainStudy
    cross: CrossStudy | None = None


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
    world: World | None = Field(
        None, description="public facts; needed by 'train' and 'world' sources"
    )
    models: tuple[Model, ...]
    tasks: tuple[TaskEntry, ...]
    study: Study
    own_estimators: str | None = Field(
        None, description="a Python file with custom estimators; see docs/own.md"
    )
    own_rules: str | None = Field(
        None, description="a Python file with custom correctness rules; see docs/own.md"
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
        own = [estimator.id for estimator in own_estimators(info.data.get("own_estimators"))]
        if wrong := unknown("estimator", ids, (*IDS, *own)):
            raise ValueError(wrong)
        for estimator in ESTIMATORS:
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
        for key, slug, known in named:
            if slug not in known:
                raise ValueError(f"{key}: {slug!r} is not defined; there are {', '.join(known)}")
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
        chosen, world = self.estimators or (), self.world is not None
        require_encoders(self.encoders, self.sampling, chosen, world)
        return self

    def pairs(self) -> list[tuple[str, str]]:
        """The (model, task) pairs that the studies need, sorted."""
        pairs = {(self.study.main.model, task) for task in self.study.main.tasks}
        if self.study.cross:
            pairs |= {(m, t) for m in self.study.cross.models for t in self.study.cross.tasks}
        return sorted(pairs)

    def answered(self, model: str) -> bool:
        """Whether a model's answers come from files, so that only their traces exist."""
        return any(entry.slug == model and entry.source.answers for entry in self.models)

    def wants_broader(self, model: str) -> bool:
        """Whether methods of role 'broader' are computed for a model of the studies."""
        cross = self.study.cross
        return model == self.study.main.model or cross is None or cross.broader


def load_config(value: dict[str, Any], where: str) -> Config:
    """Validate a configuration given as a mapping. Raises `InputError`."""
    return parse(Config, value, where)


def load_tasks(config: Config, root: Path) -> dict[str, TaskSpec]:
    """The task files that `config` names, with its overrides; `root` is the workflow's folder.

    Raises `InputError` naming the file and key.
    """
    return {entry.slug: _load_task(entry, config, root) for entry in config.tasks}


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
        raise InputError(
            f"task {entry.slug!r} asks for the workflow's public facts: add the key 'world'."
        )
    if spec.own_rule and config.own_rules is None:
        raise InputError(
            f"{where}: correctness: 'own.{spec.own_rule}' needs the key 'own_rules' of the config, "
            "the file that defines it; see docs/own.md."
        )
    if spec.own_rule and spec.own_rule not in (known := own_rules(config.own_rules)):
        raise InputError(
            f"{where}: correctness: {config.own_rules}, the file of 'own_rules', has no rule "
            f"{spec.own_rule!r}; it has {', '.join(known)}."
        )
    overrides = entry.model_dump(include={"limit", "training_limit"}, exclude_none=True)
    return spec.model_copy(update=overrides)


def resolved_yaml(config: Config, tasks: dict[str, TaskSpec], estimators: Sequence[str]) -> str:
    """Every setting of the run, defaults filled in, as YAML in a canonical order."""
    value = config.model_dump(mode="json")
    value["models"] = sorted(value["models"], key=lambda model: model["slug"])
    value["tasks"] = {slug: tasks[slug].model_dump(mode="json") for slug in sorted(tasks)}
    value["estimators"] = list(estimators)
    return yaml.safe_dump(value, sort_keys=True, allow_unicode=True)
