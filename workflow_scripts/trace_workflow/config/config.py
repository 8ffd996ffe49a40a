"""The run's configuration: one schema, validated when the workflow starts."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field, PositiveFloat, ValidationInfo, field_validator, model_validator

from trace_workflow.config import estimator_settings as settings
from trace_workflow.config.models import Dtype, Model
from trace_workflow.config.study import Study
from tracecal.answers.reading import Reading
from tracecal.estimators.custom import custom_estimators
from tracecal.estimators.registry import ESTIMATORS, IDS, column_estimators
from tracecal.fits.fit_settings import Bootstrap, Calibration, RiskControl, Splits
from tracecal.io.settings import Slug, Strict, parse, require_visible, unknown


class TaskEntry(Strict):
    """A task of the run: its file and what this run overrides in it."""

    slug: Slug = Field(description="names the task's files")
    file: str | None = Field(None, description="task file; null: config/tasks/<slug>.yaml")
    path: str | None = Field(
        None, description="local files instead of the file's source; may hold {split}, {language}"
    )
    limit: int | None = Field(
        None,
        gt=0,
        description="evaluation rows to sample, with the run's seed; null: the task file's value",
    )
    training_limit: int | None = Field(
        None, ge=0, description="rows with role 'training'; null: the task file's value"
    )


class Audit(Strict):
    """The check of the traces: teacher-forced replay of a sample of answers."""

    answers: int = Field(32, gt=0, description="answers replayed per model and task")
    tolerance: dict[Dtype, PositiveFloat] = Field(
        {"float32": 1e-3, "bfloat16": 0.25, "float16": 0.05},
        description="largest deviation allowed in surprisal, entropy (nats) and tied logits",
    )


class Tables(Strict):
    """How the tables are printed; their CSVs hold all numbers either way."""

    as_printed: bool = Field(
        False,
        description="true: print only the paper's rows and columns; false: add intervals, "
        "supported wins, counts of correct answers, definitions and further methods",
    )


class Config(Strict):
    """A run. Unset keys take the defaults given here."""

    run: Slug = Field(description="results go to results/<run>/")
    seed: int = Field(2026, ge=0, description="seed of all random draws: rows, splits, samples, …")
    models: tuple[Model, ...]
    tasks: tuple[TaskEntry, ...]
    study: Study
    custom_estimators: str | None = Field(
        None, description="Python file with custom estimators; see docs/guides/extend.md"
    )
    custom_rules: str | None = Field(
        None, description="Python file with custom correctness rules; see docs/guides/extend.md"
    )
    estimators: tuple[str, ...] | None = Field(
        None, description="estimators to compute, by id; null: all that the other settings allow"
    )
    beams: settings.Beams = settings.Beams()
    probe: settings.Probe = settings.Probe()
    lars: settings.Lars = settings.Lars()
    self_evaluation: settings.SelfEvaluation = settings.SelfEvaluation()
    sampling: settings.Sampling = settings.Sampling()
    encoders: settings.Encoders = settings.Encoders()
    audit: Audit = Audit()
    splits: Splits = Splits()
    calibration: Calibration = Calibration()
    risk_control: RiskControl = RiskControl()
    bootstrap: Bootstrap = Bootstrap()
    tables: Tables = Tables()

    @field_validator("models", "tasks")
    @classmethod
    def _distinct(cls, entries: tuple[Any, ...]) -> tuple[Any, ...]:
        if not entries:
            raise ValueError("is empty; name at least one")
        # Names that differ in case only are one folder on some file systems.
        slugs = [entry.slug.lower() for entry in entries]
        for number, entry in enumerate(entries):
            if slugs[number] in slugs[:number]:
                raise ValueError(f"slug {entry.slug!r} is given twice; slugs must be distinct")
        return entries

    @field_validator("study")
    @classmethod
    def _completed(cls, study: Study, info: ValidationInfo) -> Study:
        if "models" not in info.data:  # they are wrong, which is said
            return study
        return study.completed([model.slug for model in info.data["models"]])

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
        columns = column_estimators([*study.columns]) if study else []
        custom = custom_estimators(info.data.get("custom_estimators"))
        if wrong := unknown("estimator", ids, (*IDS, *(e.id for e in [*columns, *custom]))):
            raise ValueError(wrong)
        for estimator in (*ESTIMATORS, *columns):
            missing = [base for base in estimator.built_on if base not in ids]
            if estimator.id in ids and missing:
                raise ValueError(
                    f"{estimator.id!r} is built on {missing[0]!r}: add it, or leave both out"
                )
        return ids

    @model_validator(mode="after")
    def _references_exist(self) -> "Config":
        for key, value, allowed in self._references():
            if value not in allowed:
                listed = ", ".join(map(str, allowed))
                raise ValueError(f"{key}: {value!r} is not defined; there are {listed}")
        return self

    def _references(self) -> Iterator[tuple[str, Any, Sequence[Any]]]:
        """Each value that names an entry of another key, with its own key and what it may name."""
        models, tasks = ([entry.slug for entry in entries] for entries in (self.models, self.tasks))
        study = self.study
        for name in ("main", "cross", "parts"):
            members = getattr(study, name)
            for model in members.models if members else ():
                yield f"study.{name}.models", model, models
            for task in members.tasks if members else ():
                yield f"study.{name}.tasks", task, tasks
        for model in study.broader.models:
            yield "study.broader.models", model, models
        baselines = [entry.id for entry in ESTIMATORS if entry.role == "baseline"]
        yield "study.named_baseline", study.named_baseline, baselines
        if study.headline:
            yield "study.headline.task", study.headline.task, study.main.tasks
            rates = self.risk_control.error_rates
            yield "study.headline.error_rate", study.headline.error_rate, rates

    @model_validator(mode="after")
    def _keys_agree(self) -> "Config":
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


def load_config(value: dict[str, Any], where: str) -> Config:
    """Validate a configuration given as a mapping. Raises `InputError`."""
    require_visible(value, where)
    return parse(Config, value, where)
