"""Settings of the encoders that estimators use."""

from pydantic import Field, PositiveFloat, PositiveInt

from trace_workflow.config.job_resources import JobResources
from trace_workflow.config.model_source import ModelSource
from tracecal.io.settings import Strict


class Encoder(JobResources):
    """A model that encodes text and generates none."""

    source: ModelSource
    batch_size: PositiveInt = Field(
        64, description="texts read together; halved where memory runs out; changes no result"
    )


class Importance(Encoder):
    """MARS's phrase model: for each token two logits (begins a phrase, continues one) and one
    for the importance of the phrase that begins there."""

    source: ModelSource | None = Field(
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
