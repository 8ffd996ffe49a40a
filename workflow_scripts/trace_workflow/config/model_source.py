"""Where a model comes from: a folder, a package, the hub, or files of its answers."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from trace_workflow.config.prompting import template_fields
from tracecal.answers.reading import FormatName, Reading
from tracecal.io.settings import Repository, Revision, Strict

Distribution = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Checksums = Annotated[dict[str, Sha256], AfterValidator(lambda sums: dict(sorted(sums.items())))]


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
    files: Checksums = Field(
        {},
        description="path in the package and SHA-256 of one .gguf file, or of each file in a "
        "model folder",
    )
    hub: Repository | None = Field(None, description="owner/name on the Hugging Face hub")
    revision: Revision | None = Field(
        None, description="revision on the hub: a commit hash, or a ref that staging resolves"
    )

    @property
    def weights(self) -> bool:
        """Whether there is a model to run."""
        return any(getattr(self, kind) is not None for kind in self.KINDS)

    @model_validator(mode="after")
    def _one_source(self) -> "ModelSource":
        sources = [kind for kind in self.KINDS if getattr(self, kind) is not None]
        # Answers from files need no weights.
        if len(sources) > 1 or (not sources and getattr(self, "answers", None) is None):
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


class AnsweringSource(ModelSource):
    """Where a model comes from, or its answers, which are then not decoded here.

    Their traces are read from the files or, where a model is given too, computed by its replay.
    """

    answers: Annotated[str, template_fields(["task"])] | None = Field(
        None,
        description="files with answers made elsewhere, one per {task}; docs/reference/formats.md",
    )
    format: FormatName = Field(
        "auto", description="format of the answers; auto: detect it in each row"
    )
    reading: Reading = Field(Reading(), description="how the answers are read")
    end_token: bool = Field(
        False, description="when replaying, append the model's end token to answers given as text"
    )

    @property
    def read_as(self) -> Reading:
        """`reading` with the `format`, if one is set."""
        chosen = {} if self.format == "auto" else {"format": self.format}
        return self.reading.model_copy(update=chosen)

    @model_validator(mode="after")
    def _reads_answers(self) -> "AnsweringSource":
        if self.answers is None and self.model_fields_set & {"format", "reading", "end_token"}:
            raise ValueError(
                "'format', 'reading' and 'end_token' say how 'answers' are read: add 'answers'"
            )
        if keys := self.reading.changed(["labels", "requests"]):
            raise ValueError(
                f"'{keys[0]}' is an option of commands: write its content into the rows of "
                "'answers' (for labels: tracecal label ANSWERS --labels FILE --output NEW)"
            )
        if self.reading.also:
            raise ValueError(
                "'also' is an option of 'tracecal calibrate'; in a run, name columns in "
                "study.columns"
            )
        return self
