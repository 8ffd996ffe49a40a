"""What a calibrator was fitted on, so that it is never applied to answers of another kind."""

from collections.abc import Mapping, Sequence
from typing import Literal

import polars as pl
from pydantic import Field, PositiveInt

from tracecal.inputs.schema import Strict
from tracecal.logs.record import Known, Reasoning, StopToken
from tracecal.parts.spec import Parts

# Increase it whenever a feature's definition changes, so that older calibrators are refused.
FEATURE_VERSION = 1


class FittedOn(Strict):
    """The answers that a calibrator was fitted on."""

    model: str | None = Field(None, description="its name; null: not known")
    known_as: tuple[str, ...] = Field((), description="other names of the same model")
    revision: str | None = None
    task: str
    stop_token: StopToken = "included"
    processed: Known = "no"
    reasoning: Reasoning = "none"
    entropy: Literal["exact", "top-k", "none"] = "exact"
    top_k: PositiveInt | None = Field(None, description="log-probabilities listed per token")
    vocabulary: PositiveInt | None = Field(None, description="the model's number of tokens")
    feature_version: int = FEATURE_VERSION
    n: int = Field(ge=1)
    base_rate: float = Field(ge=0, le=1, description="the share of correct answers")
    ranking: tuple[str, ...] = Field((), description="estimators, smallest Brier score first")
    estimator: str | None = Field(None, description="the one to use; null: TRACE+")
    answers: tuple[str, ...] = Field((), repr=False, description="fingerprints of the answers")
    parts: Parts | None = Field(None, description="which parts of answers; null: whole answers")

    def stored(self) -> dict[str, object]:
        """As plain JSON."""
        usual = {"estimator": None, "parts": None, "reasoning": "none"}
        left_out = {name for name, value in usual.items() if getattr(self, name) == value}
        return self.model_dump(mode="json", by_alias=True, exclude=left_out)


def fitted_on(
    metadata: Mapping[str, str],
    correct: pl.Series,
    model: str,
    known_as: Sequence[str],
    task: str,
) -> dict[str, object]:
    """`FittedOn` as plain JSON, from a traces file's `metadata` and the labels of its answers.

    Its defaults describe traces decoded here: raw, exact, with the token that ends an answer.
    """
    names = {*known_as, *filter(None, metadata.get("known_as", "").split("\n"))} - {model}
    keys = ("revision", "stop_token", "processed", "reasoning", "entropy", "top_k", "vocabulary")
    return FittedOn(
        model=model,
        known_as=tuple(sorted(names)),
        task=task,
        n=len(correct),
        base_rate=float(correct.mean()),
        parts=Parts.model_validate_json(metadata["parts"]) if "parts" in metadata else None,
        **{name: metadata[name] for name in keys if name in metadata},
    ).stored()
