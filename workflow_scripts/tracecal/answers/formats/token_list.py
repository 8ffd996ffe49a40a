"""Lists of tokens with log-probabilities, as OpenAI's chat format writes them."""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel

from tracecal.answers.step import Step, require_id_each
from tracecal.answers.wrong_row import WrongRow

Token = dict[str, Any]  # most of an answer: checked as it is read, as models of each take longest
_WRONG = "its log-probabilities are no list of objects with 'token' and 'logprob'"
_AS_ID = "token_id:"  # vLLM's prefix of a token that it returns as an id instead of text


class Logprobs(BaseModel):
    content: list[Token] | None = None


def token_steps(
    tokens: Sequence[Token] | None, token_ids: Sequence[int] | None = None
) -> list[Step]:
    """The steps of `logprobs.content`. Raises `WrongRow` where they are not as its format has them,
    or unless `token_ids`, if any, match them.
    """
    steps = [token_step(token, token.get("top_logprobs") or ()) for token in tokens or ()]
    require_id_each(steps, token_ids)
    return steps


def token_step(token: Token, top: Iterable[Token]) -> Step:
    """The step of a chosen token and the `top` most likely ones. Raises `WrongRow`.

    What identifies a token is its id or bytes where known, as several tokens share a text.
    """
    try:
        text, token_id = token.get("token", ""), token.get("id")
        if token_id is not None and merged(token, top):
            return Step(text, None, None)
        if text.startswith(_AS_ID) and (number := text.removeprefix(_AS_ID)).isdecimal():
            token_id = int(number)
        likely = [
            (one.get("id") or tuple(one.get("bytes") or ()) or one["token"], one.get("logprob"))
            for one in top
        ]
        key = token.get("id") or tuple(token.get("bytes") or ()) or text
        return Step(text, token_id, token.get("logprob"), likely, key)
    except (AttributeError, KeyError, TypeError) as error:
        raise WrongRow(
            "its log-probabilities are no list of objects with 'token' and 'logprob'"
        ) from error


def merged(token: Token, top: Iterable[Token]) -> bool:
    """Whether a token stands for several.

    llama.cpp reports tokens that form one character together as the last of them, with all bytes.
    """
    size = len(token.get("bytes") or ())
    return any(
        other.get("id") == token["id"] and size > len(other.get("bytes") or ()) for other in top
    )
