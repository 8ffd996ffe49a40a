"""Lists of tokens with log-probabilities, as OpenAI's chat format and others write them.

A token is `{"token", "logprob", "top_logprobs": [the same of other tokens]}`, perhaps with `id` and
`bytes`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel

from tracecal.answers.step import Step, require_id_per_step
from tracecal.errors import WrongRow

# Most of an answer: checked while it is read, since a model per token takes longest.
Token = dict[str, Any]
ID_PREFIX = "token_id:"  # vLLM's, of a token that it returns as an id instead of text


class TokenList(BaseModel):
    """The `logprobs` of a choice."""

    content: list[Token] | None = None


def read_steps(
    tokens: Sequence[Token] | None, token_ids: Sequence[int] | None = None
) -> list[Step]:
    """Read the steps of `logprobs.content`.

    Raises `WrongRow` where a token is malformed, or `token_ids` are of another number.

    >>> tokens = [{"token": "7", "logprob": -0.25, "top_logprobs": [{"token": "5", "logprob": -2}]}]
    >>> read_steps(tokens)[0].top
    [('5', -2)]
    """
    steps = [read_step(token, token.get("top_logprobs") or ()) for token in tokens or ()]
    require_id_per_step(steps, token_ids)
    return steps


def read_step(token: Token, top: Iterable[Token]) -> Step:
    """Read the step of a generated token and the `top` likeliest ones. Raises `WrongRow`.

    A token is identified by its id or bytes where these are known, since tokens may share a text.
    """
    try:
        text, token_id = token.get("token", ""), token.get("id")
        if token_id is not None and _is_merged(token, top):
            return Step(text, None, None)
        if text.startswith(ID_PREFIX) and (number := text.removeprefix(ID_PREFIX)).isdecimal():
            token_id = int(number)
        likeliest = [
            (
                candidate.get("id") or tuple(candidate.get("bytes") or ()) or candidate["token"],
                candidate.get("logprob"),
            )
            for candidate in top
        ]
        key = token.get("id") or tuple(token.get("bytes") or ()) or text
        return Step(text, token_id, token.get("logprob"), likeliest, key)
    except (AttributeError, KeyError, TypeError) as error:
        raise WrongRow(
            "its log-probabilities are no list of objects with 'token' and 'logprob'"
        ) from error


def _is_merged(token: Token, top: Iterable[Token]) -> bool:
    """Whether a token stands for several.

    llama.cpp reports tokens that together form one character as the last of them, with all bytes.
    """
    n_bytes = len(token.get("bytes") or ())
    return any(
        candidate.get("id") == token["id"] and n_bytes > len(candidate.get("bytes") or ())
        for candidate in top
    )
