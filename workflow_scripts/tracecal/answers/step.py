"""Steps of an answer: each generated token with its log-probability and the likeliest tokens.

Formats make them (`formats.token_list` for most), and `step_logprobs` computes surprisals and
entropies from them.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from tracecal.errors import WrongRow

# How far above 1 rounding may move a probability or a sum of probabilities.
SLACK = 1e-3


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
