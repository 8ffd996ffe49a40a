"""Settings of a language model: its source, its resources, how it is loaded and prompted."""

from typing import Literal

from pydantic import Field, PositiveInt, model_validator

from trace_workflow.config.job_resources import JobResources
from trace_workflow.config.model_source import AnsweringSource
from tracecal.io.settings import Slug

Dtype = Literal["float32", "bfloat16", "float16"]


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
        description="vllm: decode answers and samples at a server's speed; see docs/guides/vllm.md",
    )
    dtype: Dtype = Field("float32", description="data type of weights and computation")
    chat: bool | None = Field(
        None, description="use the chat template; null: if the tokenizer has one"
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
        1,
        description="jobs of one thread that share each task's answers, beams, samples, questions "
        "and encoders' work; results agree within 1e-4",
    )

    threads: PositiveInt = Field(
        1,
        description="threads of each job that runs the model on a CPU, at most `--cores`; another "
        "number changes the last bits of results",
    )

    @model_validator(mode="after")
    def _engine_fits(self) -> "Model":
        if self.engine == "vllm" and self.quantization:
            raise ValueError(
                f"model {self.slug!r} asks for {self.quantization} quantization, which only the "
                "engine 'transformers' supports; leave out 'quantization' or 'engine: vllm'"
            )
        if self.engine == "vllm" and self.threads > 1:
            raise ValueError(
                f"model {self.slug!r} states {self.threads} threads, which only the engine "
                "'transformers' uses; leave out 'threads' or 'engine: vllm'"
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
        return sorted({*filter(None, (self.source.hub, self.source.path))} - {self.slug})

    @property
    def loading(self) -> dict[str, str | int | None]:
        """The settings for loading the model that can change a result."""
        return self.model_dump(include={"dtype", "attention", "quantization", "threads"})
