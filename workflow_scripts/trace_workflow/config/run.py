"""The run's configuration: one schema, validated when the workflow starts."""

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
from trace_workflow.config.study import Study, require_parts
from trace_workflow.config.tasks import TaskSpec, local_source, task_file
from tracecal.answers.reading import Reading
from tracecal.calibration.settings import Bootstrap, Calibration, RiskControl, Splits
from tracecal.errors import InputError, here
from tracecal.estimators.column_estimators import of_columns
from tracecal.estimators.custom import custom_estimators
from tracecal.estimators.registry import ESTIMATORS, IDS
from tracecal.io.input_files import read_yaml
from tracecal.io.settings import Slug, Strict, parse, unknown


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
            if not self.study.share_task(pair.small, pair.large):
                raise ValueError(
                    f"study.cascades: the studies ask {pair.small!r} and {pair.large!r} no common "
                    "task; name two models that share one"
                )
        for model in self.models:
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
        sizes = [model.parameters for model in self.models]
        known = [own for own in (prices, sizes) if None not in own]
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
