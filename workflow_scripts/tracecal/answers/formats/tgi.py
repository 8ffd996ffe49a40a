"""Answers of Text Generation Inference's `/generate` with `details`.

Its log-probabilities are of the distribution after temperature, penalties and truncation
(huggingface/text-generation-inference#2108), so they are raw where the request changes none.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from tracecal.answers.formats.format import Format, Row
from tracecal.answers.formats.stream import Stream, add_text
from tracecal.answers.raw_answer import RawAnswer, StopToken, infer_stop_token
from tracecal.answers.step import Step, step_token_ids, token_key
from tracecal.errors import WrongRow


class TGIToken(BaseModel):
    id: int
    text: str
    logprob: float | None = None
    special: bool = False


class Generation(BaseModel):
    finish_reason: str | None = None
    tokens: list[TGIToken] = []
    top_tokens: list[list[TGIToken]] | None = None
    best_of_sequences: list[Any] | None = None


class TGI(BaseModel):
    """An answer of `/generate`."""

    generated_text: str
    details: Generation


def read(row: Row) -> RawAnswer:
    """Read an answer; from several (``best_of``) the best one."""
    answer = TGI.model_validate(row)
    tokens, tops = answer.details.tokens, answer.details.top_tokens or []
    if tops and len(tops) != len(tokens):
        raise WrongRow(f"it has {len(tokens)} tokens and {len(tops)} lists of the most likely")
    steps = [
        _step(token, top) for token, top in zip(tokens, tops or [[]] * len(tokens), strict=True)
    ]
    # A special token at the end is none of the text, though it may have one of its own.
    stop_token: StopToken = infer_stop_token(answer.generated_text, steps)
    if tokens and tokens[-1].special:
        stop_token = "included"
    return RawAnswer(
        answer=answer.generated_text,
        steps=steps,
        token_ids=step_token_ids(steps),
        finish_reason=answer.details.finish_reason,
        stop_token=stop_token,
    )


def _step(token: TGIToken, top: Sequence[TGIToken]) -> Step:
    likeliest = [(token_key(candidate.id, candidate.text), candidate.logprob) for candidate in top]
    return Step(token.text, token.id, token.logprob, likeliest, token_key(token.id))


def recognises(row: Row) -> bool:
    """Whether a row has a generated text with details."""
    return "generated_text" in row and isinstance(row.get("details"), dict)


class TGIStream(Stream):
    """An answer, a token a piece, whose last piece has the whole text."""

    fields = (("token", dict),)

    @classmethod
    def recognises(cls, value: Row) -> bool:
        """Whether an event has a `token` beside a text that may be missing yet."""
        return super().recognises(value) and "generated_text" in value

    def add(self, piece: Row) -> None:
        """Add a token, with the likeliest ones."""
        answer, token = self.answer, piece["token"]
        details = answer.setdefault("details", {"tokens": [], "top_tokens": []})
        details["tokens"].append(token)
        details["top_tokens"].append(piece.get("top_tokens") or [])
        answer.setdefault("generated_text", "")
        if not token.get("special"):
            add_text(answer, "generated_text", token.get("text"))
        if isinstance(text := piece["generated_text"], str):
            answer["generated_text"], self.has_ended = text, True
        if isinstance(ending := piece.get("details"), dict):
            details["finish_reason"] = ending.get("finish_reason")


FORMAT = Format("tgi", recognises, TGI, read)
