"""Where a model comes from."""

from typing import Annotated, Literal

from pydantic import (
    Field,
    PositiveFloat,
    PositiveInt,
    StringConstraints,
    field_validator,
    model_validator,
)

from tracecal.inputs.schema import Repository, Revision, Strict, require_fields
from tracecal.logs.options import Format, Reading

LAYERS, LEARNING_RATE = "transformer layers", "largest step of the optimiser, AdamW"
# Families of the world's questions that its corpus states (`tracecal.world.corpus`)
Family = Literal["arithmetic", "closed_book", "extractive", "misconceptions"]
ASKED_ALONE = "records"  # the family that is asked about and not in the corpus
Distribution = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Training(Strict):
    """A small causal language model, trained from scratch in the workflow."""

    layers: PositiveInt = Field(description=LAYERS)
    width: PositiveInt = Field(description="of the hidden states")
    learning_rate: PositiveFloat = Field(description=LEARNING_RATE)
    epochs: PositiveFloat = Field(1.0, description="passes over the corpus")
    tokens_per_step: PositiveInt = Field(384, description="padded tokens in one optimiser step")
    families: list[Family] | None = Field(
        None, min_length=1, description="families of the corpus that it learns; null for all"
    )


class ModelSource(Strict):
    """Where a model comes from: exactly one of `train`, `path`, `package` and `hub`."""

    train: Training | None = None
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
        return (self.train or self.path or self.package or self.hub) is not None

    @model_validator(mode="after")
    def _one_source(self) -> "ModelSource":
        sources = [self.train, self.path, self.package, self.hub]
        if sources.count(None) != 3 and not self._may_lack_weights():
            raise ValueError(
                "give exactly one of 'train' (settings), 'path' (model folder), 'package' (name) "
                "and 'hub' (owner/name)"
            )
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
        None, description="files of answers made elsewhere, {task} filled in; docs/answers.md"
    )
    format: Format = Field("auto", description="of the answers; auto: detected in each row")
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
        return self

    def _may_lack_weights(self) -> bool:
        return self.answers is not None and not self.weights
