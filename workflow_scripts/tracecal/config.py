"""The run's configuration: one schema, validated when the workflow starts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, PositiveFloat, PositiveInt, field_validator, model_validator

from tracecal.encoders import Encoders, Sampling, require_encoders
from tracecal.errors import InputError
from tracecal.machine import Machine
from tracecal.measurement import Bootstrap, Calibration, RiskControl, Splits
from tracecal.registry import ESTIMATORS, IDS
from tracecal.schema import Slug, Strict, parse, read_yaml
from tracecal.self_evaluation import SelfEvaluation
from tracecal.sources import ModelSource
from tracecal.supervision import Lars, Probe
from tracecal.tasks.rows import local_source
from tracecal.tasks.spec import TaskSpec

Dtype = Literal["float32", "bfloat16", "float16"]


class World(Strict):
    """The embedded world that the demo's models are trained on."""

    corpus_examples: PositiveInt = Field(42000, description="training examples, all families")
    evaluation_rows: PositiveInt = Field(400, description="evaluation questions per family")
    training_rows: PositiveInt = Field(240, description="rows of role 'training' per family")
    vocabulary: PositiveInt = Field(1500, description="tokens of the byte-level BPE")


class Model(Machine):
    """One language model of the study."""

    slug: Slug
    label: str | None = Field(None, description="name in tables; null: the slug")
    source: ModelSource
    dtype: Dtype = "float32"
    chat: bool | None = Field(
        None, description="ask through the chat template; null: where the tokenizer has one"
    )
    device_map: Literal["auto", "balanced", "sequential"] | None = Field(
        None, description="spread over several GPUs; null: one device"
    )
    attention: Literal["eager", "sdpa", "flash_attention_2"] | None = Field(
        None, description="attention implementation; null: Transformers' choice"
    )
    quantization: Literal["8bit", "4bit"] | None = Field(
        None, description="bitsandbytes, an extra to install; changes the model and its results"
    )
    batch_size: PositiveInt = Field(
        64, description="answers decoded together; halved where memory runs out; changes no result"
    )
    shards: PositiveInt = Field(
        1, description="jobs that share each task's prompts; results agree within 1e-4"
    )

    @model_validator(mode="after")
    def _uses_its_gpus(self) -> "Model":
        if self.device_map is None and (self.gpus or 0) > 1:
            raise ValueError(
                f"model {self.slug!r} asks for {self.gpus} GPUs and would use one; "
                "'device_map: auto' spreads it over them"
            )
        return self

    @property
    def name(self) -> str:
        return self.label or self.slug

    @property
    def loading(self) -> dict[str, str | None]:
        """The settings of loading that can change a result."""
        return self.model_dump(include={"dtype", "attention", "quantization"})


class TaskEntry(Strict):
    """A task of the run: its file and what this run overrides in it."""

    slug: Slug
    file: str | None = Field(None, description="task file; null: config/tasks/<slug>.yaml")
    path: str | None = Field(
        None, description="local files instead of the file's source; may hold {split}, {language}"
    )
    limit: PositiveInt | None = None
    training_limit: int | None = Field(None, ge=0)


class _OrderFree(Strict):
    """Lists whose order in the config means nothing: tables and figures go by slug."""

    @field_validator("models", "tasks", check_fields=False)
    @classmethod
    def _sorted(cls, slugs: tuple[str, ...]) -> tuple[str, ...]:
        if not slugs:
            raise ValueError("is empty; name at least one")
        return tuple(sorted(set(slugs)))


class MainStudy(_OrderFree):
    """The main comparison: every estimator on every task of one model."""

    model: str
    tasks: tuple[str, ...]


class CrossStudy(_OrderFree):
    """The cross-model study: averages over `tasks` for each of `models`."""

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    broader: bool = Field(
        True,
        description="false: no methods of role 'broader' for models of this study alone, whose "
        "tables and figures show none",
    )


class Study(Strict):
    main: MainStudy
    cross: CrossStudy | None = None


class Beams(Strict):
    width: int = Field(10, ge=2, description="beams per prompt, K in Flores et al. 2025")


class Audit(Strict):
    """How the traces are proved: teacher-forced replay of a sample."""

    answers: PositiveInt = Field(32, description="answers replayed per model and task")
    tolerance: dict[Dtype, PositiveFloat] = Field(
        {"float32": 1e-3, "bfloat16": 0.25, "float16": 0.05},
        description="largest deviation of surprisal and entropy (nats) and of tied logits",
    )


class Explorer(Strict):
    """The page on which answers can be looked at one by one."""

    answers: PositiveInt = Field(
        10000, description="answers on its page; of more, equally many of each model and task"
    )


class Config(Strict):
    """A run. Unset keys take the defaults given here."""

    run: Slug = Field(description="results go to results/<run>/")
    seed: int = Field(2026, ge=0)
    world: World | None = Field(
        None, description="embedded world; needed by 'train' and 'world' sources"
    )
    models: tuple[Model, ...]
    tasks: tuple[TaskEntry, ...]
    study: Study
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
    explorer: Explorer = Explorer()

    @field_validator("models", "tasks")
    @classmethod
    def _distinct(cls, entries: tuple[Any, ...]) -> tuple[Any, ...]:
        if not entries:
            raise ValueError("is empty; name at least one")
        seen: dict[str, str] = {}
        for entry in entries:
            # Two names that differ in case only are one folder on some file systems.
            if (key := entry.slug.lower()) in seen:
                raise ValueError(f"slug {entry.slug!r} is given twice; slugs must be distinct")
            seen[key] = entry.slug
        return entries

    @field_validator("estimators")
    @classmethod
    def _known_estimators(cls, ids: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for estimator in ids or ():
            if estimator not in IDS:
                raise ValueError(f"unknown estimator {estimator!r}; allowed: {', '.join(IDS)}")
        for one in ESTIMATORS:
            if one.id in (ids or ()) and (missing := [x for x in one.built_on if x not in ids]):
                raise ValueError(
                    f"{one.id!r} is built on {missing[0]!r}: add it, or leave both out"
                )
        if ids is not None and not ids:
            raise ValueError("is empty; name at least one estimator, or null for all")
        return ids

    @model_validator(mode="after")
    def _study_exists(self) -> "Config":
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
        return self

    @model_validator(mode="after")
    def _encoders_are_there(self) -> "Config":
        named = self.estimators or ()
        require_encoders(self.encoders, self.sampling, named, self.world is not None)
        return self

    def pairs(self) -> list[tuple[str, str]]:
        """The (model, task) pairs that the studies need, sorted."""
        pairs = {(self.study.main.model, task) for task in self.study.main.tasks}
        if self.study.cross:
            pairs |= {(m, t) for m in self.study.cross.models for t in self.study.cross.tasks}
        return sorted(pairs)

    def wants_broader(self, model: str) -> bool:
        """Whether methods of role 'broader' are computed for a model of the studies."""
        cross = self.study.cross
        return model == self.study.main.model or cross is None or cross.broader


def load_config(value: dict[str, Any], where: str) -> Config:
    """Validate a configuration given as a mapping. Raises `InputError`."""
    return parse(Config, value, where)


def load_tasks(config: Config, root: Path) -> dict[str, TaskSpec]:
    """Read the task files that `config` names, below `root`, with the run's overrides.

    Raises `InputError` naming the file and key.
    """
    return {entry.slug: _load_task(entry, config, root) for entry in config.tasks}


def _load_task(entry: TaskEntry, config: Config, root: Path) -> TaskSpec:
    path = root / (entry.file or f"config/tasks/{entry.slug}.yaml")
    if not path.exists():
        present = sorted(file.stem for file in (root / "config/tasks").glob("*.yaml"))
        raise InputError(
            f"task {entry.slug!r}: there is no task file {entry.file or path.relative_to(root)}; "
            f"write one, or use one of {', '.join(present)}."
        )
    where = str(entry.file or path.relative_to(root))
    value = read_yaml(path)
    spec = parse(TaskSpec, value, where)
    if entry.path is not None:
        where = f"task {entry.slug!r}, read from {entry.path}"
        spec = parse(TaskSpec, value | {"source": local_source(value["source"], entry.path)}, where)
    if spec.source.world is not None and config.world is None:
        raise InputError(
            f"task {entry.slug!r} is of the embedded world, which needs the key 'world'."
        )
    overrides = {
        key: value
        for key in ("limit", "training_limit")
        if (value := getattr(entry, key)) is not None
    }
    return spec.model_copy(update=overrides)


def resolved_yaml(config: Config, tasks: dict[str, TaskSpec], estimators: Sequence[str]) -> str:
    """Every setting of the run with defaults filled in, as YAML in a canonical order."""
    value = config.model_dump(mode="json")
    value["models"] = sorted(value["models"], key=lambda model: model["slug"])
    value["tasks"] = {slug: tasks[slug].model_dump(mode="json") for slug in sorted(tasks)}
    value["estimators"] = list(estimators)
    return yaml.safe_dump(value, sort_keys=True, allow_unicode=True)
