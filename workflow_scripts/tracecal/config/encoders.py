"""Settings of semantic encoders, NLI models and sampling."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from tracecal.config.resources import JobResources
from tracecal.config.sources import LAYERS, LEARNING_RATE, ModelSource
from tracecal.inputs.schema import Strict


class EncoderTraining(Strict):
    """A small encoder, trained from scratch on the world of public facts."""

    layers: PositiveInt = Field(description=LAYERS)
    width: PositiveInt = Field(description="of the hidden states")
    learning_rate: PositiveFloat = Field(description=LEARNING_RATE)
    examples: PositiveInt = Field(12000, description="training examples, from the corpus")


class EncoderSource(ModelSource):
    """Where an encoder comes from; the keys are those of a language model's source."""

    train: EncoderTraining | None = None


class Encoder(JobResources):
    """A model that encodes text and generates none."""

    source: EncoderSource
    batch_size: PositiveInt = Field(
        64, description="texts read together; halved where memory runs out; changes no result"
    )


class Importance(Encoder):
    """MARS's phrase model: for each token two logits (begins a phrase, continues one) and one
    for the importance of the phrase that begins there."""

    source: EncoderSource | None = Field(
        None,
        description="null: no model, and every language is treated as one that it does not cover",
    )
    languages: tuple[str, ...] = Field(
        ("en",), description="languages that it covers; others: every word a phrase of equal weight"
    )
    temperature: PositiveFloat = Field(0.1, description="of the softmax over importances")


class Encoders(Strict):
    """The semantic encoders and NLI models that estimators use."""

    similarity: Encoder | None = Field(
        None, description="token_sar: a cross-encoder of sentence pairs, or an embedding model"
    )
    importance: Importance | None = Field(None, description="mars: the phrase model")
    entailment: Encoder | None = Field(None, description="sampling.equivalence 'nli': an NLI model")


class Sampling(Strict):
    """Answers sampled beside the decoded one, and when two of them count as equivalent."""

    answers: int = Field(5, ge=2, description="sampled answers per prompt")
    temperature: PositiveFloat = Field(1.0, description="of the softmax that is sampled from")
    equivalence: Literal["nli", "exact"] = Field(
        "nli", description="nli: by encoders.entailment; exact: the same text after normalisation"
    )
    same_meaning: Literal["mutual_entailment", "no_contradiction"] = Field(
        "mutual_entailment",
        description="semantic_entropy with 'nli': two samples mean the same where each entails the "
        "other, or where neither contradicts the other",
    )


def users(sampling: Sampling) -> dict[str, tuple[str, ...]]:
    """Which estimators use each encoder; `lars` has one among its own settings."""
    sampled = ("semantic_entropy", "selfcheckgpt") if sampling.equivalence == "nli" else ()
    return {
        "similarity": ("token_sar",),
        "importance": ("mars",),
        "entailment": sampled,
        "lars": ("lars",),
    }


def require_encoders(
    encoders: Encoders, sampling: Sampling, chosen: Sequence[str], world: bool
) -> None:
    """Raise `ValueError` where a chosen estimator needs an encoder that is not configured."""
    for name, encoder in encoders:
        needing = [estimator for estimator in users(sampling)[name] if estimator in chosen]
        if needing and encoder is None:
            hint = ", or 'sampling.equivalence: exact'" if name == "entailment" else ""
            raise ValueError(
                f"{' and '.join(needing)} need{'s' if len(needing) == 1 else ''} encoders.{name}, "
                f"which is not set; set it{hint}, or list 'estimators' without what needs it"
            )
        if encoder and encoder.source and encoder.source.train and not world:
            raise ValueError(f"encoders.{name} is trained here, which needs the key 'world'")
