"""Responses of Cohere's `/v2/chat`, with `logprobs` of pieces of text, each of one token or more.

It gives no alternatives. Whether the log-probabilities are before or after temperature is not
documented.
"""

from typing import Any

from pydantic import BaseModel

from tracecal.answers.formats.format import Format, Row
from tracecal.answers.raw_answer import RawAnswer, infer_stop_token
from tracecal.answers.reasoning import Content, split_content
from tracecal.answers.step import Step, step_token_ids
from tracecal.errors import WrongRow

FINISHES = {"COMPLETE": "stop", "STOP_SEQUENCE": "stop_sequence", "MAX_TOKENS": "length"}


class CohereMessage(BaseModel):
    content: Content = None


class Piece(BaseModel):
    text: str | None = None
    token_ids: list[int]
    logprobs: list[float | None] | None = None


class Cohere(BaseModel):
    """A response of `/v2/chat`."""

    finish_reason: str
    message: CohereMessage
    logprobs: list[Piece] | None = None
    model: str | None = None


def read(row: Row) -> RawAnswer:
    """Read a response."""
    response = Cohere.model_validate(row)
    answer, thoughts = split_content(response.message.content)
    steps = [step for piece in response.logprobs or () for step in _steps(piece)]
    finish = response.finish_reason
    return RawAnswer(
        answer=answer,
        thoughts=thoughts,
        steps=steps,
        token_ids=step_token_ids(steps),
        finish_reason=FINISHES.get(finish, finish.lower()),
        stop_token=infer_stop_token(answer if thoughts is None else None, steps),
        model=response.model,
    )


def _steps(piece: Piece) -> list[Step]:
    """The steps of a piece, whose last token gets its text: the piece splits it no further."""
    n_tokens, logprobs = len(piece.token_ids), piece.logprobs or [None] * len(piece.token_ids)
    if len(logprobs) != n_tokens:
        raise WrongRow(f"it has {n_tokens} token ids and {len(logprobs)} log-probabilities")
    texts: list[Any] = [""] * (n_tokens - 1) + [piece.text]
    return [
        Step(text, token_id, logprob)
        for text, token_id, logprob in zip(texts, piece.token_ids, logprobs, strict=True)
    ]


def recognises(row: Row) -> bool:
    """Whether a row has Cohere's pieces, or a message in parts and its words for the end."""
    pieces = row.get("logprobs")
    if not isinstance(row.get("message"), dict) or not isinstance(row.get("finish_reason"), str):
        return False
    if isinstance(pieces, list) and pieces:
        return all(isinstance(piece, dict) and "token_ids" in piece for piece in pieces)
    return row["finish_reason"] in FINISHES


FORMAT = Format("cohere", recognises, Cohere, read)
