"""Steps of an answer: each generated token with its log-probability and the likeliest tokens.

Formats make them (`formats.logprobs` for most), and `trace` computes surprisals and
entropies from them.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from tracecal.errors import WrongRow

# How far above 1 rounding may move a probability or a sum of probabilities.
SLACK = 1e-3
# How far apart two log-probabilities of one token may lie: programs round one of them, or compute
# both in single precision.
SAME = 1e-4
UNLISTED = -9999.0  # what servers write for a token that is not among the likeliest ones
# Tokenizers' marks of a blank and of a new line, where a program does not decode tokens.
MARKS = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n"})


# What identifies a token: its id, else its bytes (empty where unknown), else its text. A plain
# tuple, as an answer has thousands.
TokenKey = tuple[int | None, tuple[int, ...], str | None]


class Step(NamedTuple):
    """A generated token with its log-probability, and the likeliest tokens.

    `top` holds a (key, log-probability) pair per token; `key` is the key of the generated token.
    `merged` says that tokens of equal text were merged, so that some are missing.
    """

    text: str | None
    token_id: int | None
    logprob: float | None
    top: Sequence[tuple[Hashable, float | None]] = ()
    key: Hashable = None
    merged: bool = False


def is_same_token(key: Hashable, other: Hashable) -> bool:
    """Whether two keys are of one token: by ids where both are known, else by bytes, else by text.

    >>> is_same_token(token_key(text="Oslo"), (None, tuple(b" Oslo"), None))
    True
    """
    if not (isinstance(key, tuple) and isinstance(other, tuple)):
        return key == other
    (token_id, spelling, text), (other_id, other_spelling, other_text) = key, other
    if token_id is not None and other_id is not None:
        return token_id == other_id
    if spelling and other_spelling:
        return spelling == other_spelling
    return _plain_text(spelling, text) == _plain_text(other_spelling, other_text)


def token_key(token_id: int | None = None, text: str | None = None) -> TokenKey:
    """The key of a token whose bytes are unknown."""
    return token_id, (), text


def plain_text(key: Hashable) -> str:
    """The text of the token of a key, without blanks at its ends."""
    _, spelling, text = key if isinstance(key, tuple) else (None, (), key)
    return _plain_text(spelling, text)


def _plain_text(spelling: tuple[int, ...], text: str | None) -> str:
    """The text of a token without blanks at its ends, which programs strip on one side."""
    text = bytes(spelling).decode(errors="replace") if spelling else str(text or "")
    return text.translate(MARKS).strip()


def is_same_logprob(logprob: float, other: float) -> bool:
    """Whether two log-probabilities differ by no more than rounding.

    >>> is_same_logprob(-1.203973, -1.20397)
    True
    """
    return abs(logprob - other) <= SAME * max(1.0, -logprob)


def generated_entries(step: Step) -> list[tuple[Hashable, float | None]]:
    """Return the pairs of `top` that stand for the generated token.

    Programs name it by bytes on one side only, lose its blank, round one of its log-probabilities,
    or list it twice. Different tokens may share a text, but differ in log-probability.

    >>> generated_entries(Step("Oslo", None, -0.25, [("Oslo", -0.25), ("Rome", -2.0)], "Oslo"))
    [('Oslo', -0.25)]
    """
    logprob = step.logprob
    if logprob is None:
        return [pair for pair in step.top if pair == (step.key, None)]
    allowance = SAME * max(1.0, -logprob)  # as `is_same_logprob`, which is slow for thousands
    low, high = logprob - allowance, logprob + allowance
    return [
        pair
        for pair in step.top
        if pair[1] is not None and low <= pair[1] <= high and is_same_token(pair[0], step.key)
    ]


def step_token_ids(steps: Sequence[Step]) -> list[int] | None:
    """The token ids of `steps`; None where one is unknown.

    >>> step_token_ids([Step("Li", 5, -0.25), Step("ma", 7, -0.5)])
    [5, 7]
    """
    token_ids = [step.token_id for step in steps]
    return token_ids if token_ids and None not in token_ids else None


def require_id_per_step(steps: Sequence[Step], token_ids: Sequence[int] | None) -> None:
    """Raise `WrongRow` where `steps` and `token_ids` are both known and differ in number."""
    if steps and token_ids and len(steps) != len(token_ids):
        raise WrongRow(f"it has {len(token_ids)} token ids and {len(steps)} log-probabilities")
