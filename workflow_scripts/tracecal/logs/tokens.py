"""Tokens with their log-probabilities, as OpenAI's chat format and others write them."""

from collections.abc import Hashable, Iterable, Sequence

from pydantic import BaseModel

from tracecal.logs.steps import Step, WrongRow

_AS_ID = "token_id"  # vLLM's prefix of a token that it returns as an id instead of text


class Token(BaseModel):
    id: int | None = None
    token: str = ""
    bytes: list[int] | None = None
    logprob: float | None = None

    @property
    def key(self) -> Hashable:
        """What identifies it: its id or bytes where known, as several tokens share a text."""
        if self.id is not None:
            return self.id
        return self.token if self.bytes is None else tuple(self.bytes)

    @property
    def value(self) -> float | None:
        """Its log-probability."""
        return self.logprob


def merged(token: Token, top: Iterable[Token]) -> bool:
    """Whether a token stands for several.

    llama.cpp reports tokens that form one character together as the last of them, with all bytes.
    """
    size = len(token.bytes or ())
    return any(other.id == token.id is not None and size > len(other.bytes or ()) for other in top)


class ChosenToken(Token):
    top_logprobs: list[Token] | None = None


class Logprobs(BaseModel):
    content: list[ChosenToken] | None = None


def token_steps(
    tokens: Sequence[ChosenToken] | None, token_ids: Sequence[int] | None = None
) -> list[Step]:
    """The steps of `logprobs.content`. Raises `WrongRow` unless `token_ids`, if any, match them."""
    steps = [token_step(token, token.top_logprobs or ()) for token in tokens or ()]
    require_id_each(steps, token_ids)
    return steps


def token_step(token: Token, top: Sequence[Token]) -> Step:
    """The step of a chosen token and the `top` most likely ones."""
    if merged(token, top):
        return Step(token.token, None, None)
    prefix, _, number = token.token.rpartition(":")
    token_id = int(number) if prefix == _AS_ID and number.isdecimal() else token.id
    likely = [(other.key, other.value) for other in top]
    return Step(token.token, token_id, token.value, likely, token.key)


def require_id_each(steps: Sequence[Step], token_ids: Sequence[int] | None) -> None:
    """Raise `WrongRow` where steps and token ids are both known but differ in number."""
    if steps and token_ids and len(steps) != len(token_ids):
        raise WrongRow(f"it has {len(token_ids)} token ids and {len(steps)} log-probabilities")


def ids_of(steps: Sequence[Step]) -> list[int] | None:
    """The steps' token ids; null where one is unknown."""
    ids = [step.token_id for step in steps]
    return ids if ids and None not in ids else None
