"""Settings of sampled answers."""

from typing import Literal

from pydantic import Field, PositiveFloat

from tracecal.io.settings import Strict


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
