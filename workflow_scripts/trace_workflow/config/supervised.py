"""Settings of supervised estimators: the probe of hidden states, and LARS."""

from typing import ClassVar

from pydantic import (
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from trace_workflow.config.model_source import ModelSource
from tracecal.io.settings import Strict

LEARNING_RATE = "largest step of the optimiser, AdamW"


class Fitting(Strict):
    """How an estimator is trained on the rows of role 'training'."""

    learning_rate: PositiveFloat = Field(1e-4, description=LEARNING_RATE)
    weight_decay: NonNegativeFloat = Field(0.01, description="of the optimiser, AdamW")
    batch_size: PositiveInt = Field(32, description="rows in one optimiser step")
    epochs: PositiveInt = Field(40, description="at most")
    patience: PositiveInt = Field(4, description="epochs without a better held-out loss")
    held_out: float = Field(0.2, gt=0, lt=1, description="share of groups for early stopping")


class LarsFitting(Fitting):
    """As for other estimators; an encoder from scratch takes larger steps than a pretrained one."""

    learning_rate: PositiveFloat = Field(1e-3, description=LEARNING_RATE)


class Probe(Strict):
    """The internal-state probe (Ji et al. 2024)."""

    depth: float = Field(
        1.0, ge=0, le=1, description="layer as a share of all; 0: embeddings, 1: last, as in Ji"
    )
    expansion: PositiveFloat = Field(
        2.6875, description="hidden units per input value; 11008 for 4096 in Ji et al."
    )
    fitting: Fitting = Fitting()


class SmallEncoder(Strict):
    """An encoder over the language model's own tokens, trained from scratch."""

    layers: PositiveInt = Field(1, description="transformer layers")
    width: PositiveInt = Field(64, description="a multiple of 16")

    @field_validator("width")
    @classmethod
    def _of_whole_heads(cls, width: int) -> int:
        if width % 16:
            raise ValueError(f"{width} must be a multiple of 16")
        return width


class LarsSource(ModelSource):
    """Where the encoder comes from: trained from scratch, or as a language model's source."""

    KINDS: ClassVar[dict[str, str]] = {"train": "settings", **ModelSource.KINDS}

    train: SmallEncoder | None = None


class LarsEncoder(Strict):
    """The encoder of LARS: a RoBERTa, or a small one trained from scratch."""

    source: LarsSource = LarsSource(train=SmallEncoder())
    trained: bool = Field(
        False, description="the source holds a trained LARS with its edges, used without training"
    )

    @model_validator(mode="after")
    def _sound(self) -> "LarsEncoder":
        if self.trained and self.source.train:
            raise ValueError("'trained' needs a source with 'path' or 'hub', the trained scorer")
        return self


class Lars(Strict):
    """Learnable response scoring (Yaldiz et al. 2025)."""

    encoder: LarsEncoder = LarsEncoder()
    bins: int = Field(8, ge=2, description="quantile bins of token probabilities, 8 in the paper")
    fitting: LarsFitting = LarsFitting()
