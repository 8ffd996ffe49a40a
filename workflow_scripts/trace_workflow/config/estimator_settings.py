"""Settings of estimators that need more than a trace: beams, samples, questions or models."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, PositiveFloat, PositiveInt, field_validator, model_validator

from trace_workflow.config.job_resources import JobResources
from trace_workflow.config.model_source import ModelSource
from trace_workflow.config.prompting import template_fields
from tracecal.io.settings import Strict, require_fields

ANSWER_FIELDS = ("question", "context", "answer")


class Beams(Strict):
    width: int = Field(10, ge=2, description="beams per prompt, K in Flores et al. 2025")


class SelfEvaluation(Strict):
    """The prompts of P(True) and verbalised confidence."""

    p_true_prompt: Annotated[str, template_fields(ANSWER_FIELDS, "question", "answer")] = Field(
        "{context}\n\nQuestion: {question}\nProposed answer: {answer}\n\n"
        "Is the proposed answer (A) true or (B) false?",
        description="the user's message; may hold {context}",
    )
    p_true_start: str = Field(
        "The proposed answer is (",
        description="start of the model's reply; the option A or B is the next token",
    )
    verbalized_prompt: str = Field(
        "How probable is it that your answer is correct? Reply with a number between 0.0 (surely "
        "wrong) and 1.0 (surely correct), and with nothing else.",
        description="the user's second message; may hold {question}, {context}, {answer}",
    )

    @field_validator("p_true_start")
    @classmethod
    def _ends_on_a_token(cls, value: str) -> str:
        if value != value.rstrip():
            raise ValueError("must not end in white space, which the option's own token may hold")
        return value

    @field_validator("verbalized_prompt")
    @classmethod
    def _asks_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty; ask the model for its confidence")
        return require_fields(value, ANSWER_FIELDS, ())


class Sampling(Strict):
    """Answers sampled beside the decoded one, and when two of them count as equivalent."""

    answers: int = Field(5, ge=2, description="sampled answers per prompt")
    temperature: PositiveFloat = Field(1.0, description="softmax temperature")
    equivalence: Literal["nli", "exact"] = Field(
        "nli", description="nli: encoders.entailment decides; exact: equal text after normalisation"
    )
    same_meaning: Literal["mutual_entailment", "no_contradiction"] = Field(
        "mutual_entailment",
        description="semantic_entropy with 'nli': two samples mean the same if each entails the "
        "other, or if neither contradicts the other",
    )


LEARNING_RATE = "largest learning rate of the optimiser, AdamW"


class Fitting(Strict):
    """How an estimator is trained on the rows of role 'training'."""

    learning_rate: PositiveFloat = Field(1e-4, description=LEARNING_RATE)
    weight_decay: float = Field(0.01, ge=0, description="weight decay of the optimiser, AdamW")
    batch_size: PositiveInt = Field(32, description="rows per optimiser step")
    epochs: PositiveInt = Field(40, description="largest number of epochs")
    patience: PositiveInt = Field(
        4, description="epochs without a lower held-out loss before training stops"
    )
    held_out: float = Field(0.2, gt=0, lt=1, description="share of groups for early stopping")


class LarsFitting(Fitting):
    """As for other estimators; an encoder from scratch takes larger steps than a pretrained one."""

    learning_rate: PositiveFloat = Field(1e-3, description=LEARNING_RATE)


class Probe(Strict):
    """The internal-state probe (Ji et al. 2024)."""

    depth: float = Field(
        1.0,
        ge=0,
        le=1,
        description="relative depth of the layer; 0: embeddings, 1: last, as in Ji et al.",
    )
    expansion: PositiveFloat = Field(
        2.6875, description="hidden units per input value; 11008 for 4096 in Ji et al."
    )
    fitting: Fitting = Fitting()


class SmallEncoder(Strict):
    """An encoder over the language model's own tokens, trained from scratch."""

    layers: PositiveInt = Field(1, description="transformer layers")
    width: PositiveInt = Field(64, description="hidden units, a multiple of 16")

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
        False, description="the source is a trained LARS with its bin edges, used without training"
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


class Encoder(JobResources):
    """A model that encodes text and generates none."""

    source: ModelSource
    batch_size: PositiveInt = Field(
        64, description="texts read together; halved where memory runs out; changes no result"
    )


class Importance(Encoder):
    """MARS's phrase model: for each token two logits (begins a phrase, continues one) and one
    for the importance of the phrase that begins there."""

    source: ModelSource | None = Field(None, description="null: no model, which covers no language")
    languages: tuple[str, ...] = Field(
        ("en",),
        description="languages of the model; in others every word is a phrase of equal weight",
    )
    temperature: PositiveFloat = Field(
        0.1, description="temperature of the softmax over importances"
    )


class Encoders(Strict):
    """The semantic encoders and NLI models that estimators use."""

    similarity: Encoder | None = Field(
        None, description="token_sar: a cross-encoder of sentence pairs, or an embedding model"
    )
    importance: Importance | None = Field(None, description="mars: the phrase model")
    entailment: Encoder | None = Field(None, description="sampling.equivalence 'nli': an NLI model")
