"""Settings of a language model: its source, its resources, how it is loaded and prompted."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    StringConstraints,
    field_validator,
    model_validator,
)

from tracecal.answers.reading import FormatName, Reading
from tracecal.io.settings import Repository, Revision, Slug, Strict, require_fields

Distribution = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class ModelSource(Strict):
    """Where a model comes from: exactly one of `path`, `package` and `hub`."""

    KINDS: ClassVar[dict[str, str]] = {
        "path": "model folder",
        "package": "name",
        "hub": "owner/name",
    }

    path: str | None = Field(
        None, description="local folder as Transformers saves it (safetensors)"
    )
    package: Distribution | None = Field(None, description="installed Python package")
    files: dict[str, Sha256] = Field(
        {},
        description="of the package: path and SHA-256 of one .gguf file, or of all files of a "
        "model folder",
    )
    hub: Repository | None = Field(None, description="owner/name on the Hugging Face hub")
    revision: Revision | None = Field(
        None, description="of the hub's model: a commit hash, or a ref, resolved at staging"
    )

    @field_validator("files")
    @classmethod
    def _in_order(cls, files: dict[str, str]) -> dict[str, str]:
        return dict(sorted(files.items()))

    @property
    def weights(self) -> bool:
        """Whether there is a model to run."""
        return any(getattr(self, kind) is not None for kind in self.KINDS)

    @model_validator(mode="after")
    def _one_source(self) -> "ModelSource":
        sources = [kind for kind in self.KINDS if getattr(self, kind) is not None]
        if len(sources) != 1 and not self._may_lack_weights():
            *first, last = (f"{kind!r} ({what})" for kind, what in self.KINDS.items())
            raise ValueError(f"give exactly one of {', '.join(first)} and {last}")
        if (self.package is None) != (not self.files):
            raise ValueError("'package' and 'files' must be given together")
        if (self.hub is None) != (self.revision is None):
            raise ValueError(
                "'hub' and 'revision' must be given together; the revision is a commit hash, as "
                f"listed at https://huggingface.co/{self.hub or 'owner/name'}/commits/main"
            )
        return self

    def _may_lack_weights(self) -> bool:
        return False


class AnsweringSource(ModelSource):
    """Where a model comes from, or its answers, which are then not decoded here.

    Their traces are read from the files or, where a model is given too, computed by its replay.
    """

    answers: str | None = Field(
        None,
        description="files of answers made elsewhere, {task} filled in; docs/reference/formats.md",
    )
    format: FormatName = Field("auto", description="of the answers; auto: detected in each row")
    reading: Reading = Field(Reading(), description="how the answers are read")
    end_token: bool = Field(
        False, description="in a replay, put the model's end token after answers given as text"
    )

    @property
    def read_as(self) -> Reading:
        """`reading` with the `format`, if one is set."""
        chosen = {} if self.format == "auto" else {"format": self.format}
        return self.reading.model_copy(update=chosen)

    @field_validator("answers")
    @classmethod
    def _of_tasks(cls, value: str | None) -> str | None:
        return value if value is None else require_fields(value, ["task"], [])

    @model_validator(mode="after")
    def _reads_answers(self) -> "AnsweringSource":
        if self.answers is None and self.model_fields_set & {"format", "reading", "end_token"}:
            raise ValueError(
                "'format', 'reading' and 'end_token' say how 'answers' are read: add 'answers'"
            )
        if self.reading.also:
            raise ValueError(
                "'also' is of 'tracecal calibrate'; the columns of a run are those of study.columns"
            )
        return self

    def _may_lack_weights(self) -> bool:
        return self.answers is not None and not self.weights


# Resources that a model's jobs request. They affect no result, so changing them reruns nothing.


SMALL = {"gpus": 0, "memory_gb": 2, "hours": 1}
LARGE = {"gpus": 1, "memory_gb": 32, "hours": 4}


class JobResources(Strict):
    """Keys of every model and encoder. Null is the default: enough for a model of some 8 billion
    parameters, or little for one that comes with a package.
    """

    gpus: int | None = Field(
        None, ge=0, description="GPUs of one job, which share its model; null: 1, small: 0"
    )
    memory_gb: PositiveFloat | None = Field(
        None, description="main memory of one job, doubled at each retry; null: 32, small: 2"
    )
    hours: PositiveFloat | None = Field(
        None,
        description="time limit of decoding one task, doubled at each retry; other steps get "
        "shares of it; null: 4, small: 1",
    )

    def needs(self, source: ModelSource | None) -> "JobResources":
        """These resources with defaults filled in, for a model from `source` (None: no model)."""
        default = SMALL if source is None or source.package else LARGE
        configured = self.model_dump(include=set(default), exclude_none=True)
        return JobResources(**default | configured)


def has_gpu() -> bool:
    """Whether this machine has a GPU. Jobs take turns only then; on CPUs they run in parallel."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()


def job_requests(
    models: Mapping[str, Any],
    encoders: Any,
    encoder: str | None = None,
    share: float = 1.0,
    most_gpus: float = math.inf,
) -> dict[str, Callable[..., float]]:
    """The resources that a job requests which runs its model or, where it is given, an `encoder`.

    Twice as much memory and time at each retry; `share` is the job's part of the model's hours.
    Batch size and number of GPUs are resources, not parameters: they change no result. One machine
    lends its GPUs to one job at a time (profiles/default); SLURM counts them.
    """

    def model(wildcards: Any) -> Any:
        return getattr(encoders, encoder) if encoder else models[wildcards.model]

    def needs(wildcards: Any) -> JobResources:
        run = model(wildcards) or JobResources()
        return run.needs(getattr(run, "source", None))

    def gpus(wildcards: Any) -> float:
        return min(most_gpus, needs(wildcards).gpus)

    def doubled(amount: float, attempt: int) -> int:
        return math.ceil(amount * 2 ** (attempt - 1))

    return {
        "gpu": gpus,
        "uses_gpus": lambda wildcards: min(int(has_gpu()), gpus(wildcards)),
        "mem_mb": lambda wildcards, attempt: doubled(1000 * needs(wildcards).memory_gb, attempt),
        "runtime": lambda wildcards, attempt: doubled(60 * share * needs(wildcards).hours, attempt),
        "batch_size": lambda wildcards: getattr(model(wildcards), "batch_size", 1),
    }


# Settings of one language model.


Dtype = Literal["float32", "bfloat16", "float16"]


class Price(Strict):
    """What a model's tokens cost, in any currency that all models share."""

    prompt: NonNegativeFloat = Field(description="of a million tokens of prompts")
    generated: PositiveFloat = Field(description="of a million tokens of answers")


class Model(JobResources):
    """One language model of the study."""

    slug: Slug = Field(description="names the model's files")
    label: str | None = Field(None, description="name in tables; null: the slug")
    short_label: str | None = Field(
        None, description="name in cross_model_task_details; null: the label"
    )
    source: AnsweringSource
    engine: Literal["transformers", "vllm"] = Field(
        "transformers",
        description="vllm: answers and samples at a server's speed; see docs/guides/vllm.md",
    )
    dtype: Dtype = Field("float32", description="of weights and computation")
    chat: bool | None = Field(
        None, description="ask through the chat template; null: where the tokenizer has one"
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
    price: Price | None = Field(
        None, description="of its tokens; null: cascades count its parameters times tokens"
    )
    parameters: PositiveFloat | None = Field(
        None,
        description="billions that a token uses, by which cascades know the larger of two models "
        "without prices; null: unknown",
    )

    @model_validator(mode="after")
    def _engine_fits(self) -> "Model":
        if self.engine == "vllm" and self.quantization:
            raise ValueError(
                f"model {self.slug!r} asks for {self.quantization} quantization, which only the "
                "engine 'transformers' supports; leave out 'quantization' or 'engine: vllm'"
            )
        if self.engine == "vllm" and self.source.answers:
            raise ValueError(
                f"the answers of model {self.slug!r} come from files, so there is nothing to "
                "decode; leave out 'engine: vllm'"
            )
        return self

    @property
    def name(self) -> str:
        return self.label or self.slug

    @property
    def known_as(self) -> list[str]:
        """Other names that a server may give the model."""
        names = [self.name, self.source.hub, self.source.path]
        return sorted({name for name in names if name} - {self.slug})

    @property
    def loading(self) -> dict[str, str | None]:
        """The settings for loading the model that can change a result."""
        return self.model_dump(include={"dtype", "attention", "quantization"})
