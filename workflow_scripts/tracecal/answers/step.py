"""One generated token with its log-probability and the likeliest tokens."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from tracecal.answers.wrong_row import WrongRow

# How far above 1 rounding may move a probability or a sum of probabilities.
SLACK = 1e-3


class Step(NamedTuple):
    """One generated token, its log-probability, and the most likely tokens.

    `top` holds (key, log-probability) of each, `key` the token's own key. Where `merged`, tokens
    of the same text were merged and some are missing.
    """

    text: str | None
    token_id: int | None
    logprob: float | None
    top: Sequence[tuple[Hashable, float | None]] = ()
    key: Hashable = None
    merged: bool = False


def require_id_each(steps: Sequence[Step], token_ids: Sequence[int] | None) -> None:
    """Raise `WrongRow` where steps and token ids are both known but differ in number."""
    if steps and token_ids and len(steps) != len(token_ids):
        raise WrongRow(f"it has {len(token_ids)} token ids and {len(steps)} log-probabilities")


def ids_of(steps: Sequence[Step]) -> list[int] | None:
    """The steps' token ids; null where one is unknown."""
    ids = [step.token_id for step in steps]
    return ids if ids and None not in ids else None
