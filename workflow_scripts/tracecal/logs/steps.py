"""Surprisals and entropies from the tokens of an answer as other programs record them."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from tracecal.logs.top_k import Entropy, Rounding, detect_rounding, entropy_bounds

# Servers write this for a token that is not among the most likely ones.
UNLISTED = -9999.0
# How far above 1 rounding may move a probability or a sum of probabilities.
SLACK = 1e-3


class WrongRow(ValueError):
    """A row of a file is invalid; the message says why, without naming the row."""


@dataclass(frozen=True)
class Step:
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


def known(logprob: float | None, where: str) -> float | None:
    """A log-probability, at most 0; null where it is not known. Raises `WrongRow`."""
    if logprob is None or logprob <= UNLISTED:
        return None
    if math.isnan(logprob):
        raise WrongRow(f"{where} has the log-probability NaN")
    if logprob > SLACK:
        raise WrongRow(f"{where} has the log-probability {logprob:g}, above 0")
    return min(logprob, 0.0)


def surprisals(steps: Sequence[Step]) -> tuple[list[float] | None, str | None]:
    """-ln p of each token (nats); or null and the reason."""
    if not steps:
        return None, "no log-probabilities are given"
    values = [known(step.logprob, f"token {t}") for t, step in enumerate(steps, 1)]
    if None in values:
        return None, f"the log-probability of token {values.index(None) + 1} is not given"
    return [0.0 - value for value in values], None


def entropies(
    steps: Sequence[Step], vocabulary: int | None, greedy: bool, error: float | None = None
) -> tuple[list[Entropy] | None, str | None]:
    """Bounds of each step's entropy; or null and the reason. Raises `WrongRow`.

    `greedy`: the answers were decoded greedily, so the chosen token is the likeliest one. `error`
    is the largest rounding error of a log-probability (nats); null: detected.
    """
    if not any(step.top for step in steps):
        return None, "no top log-probabilities are given"
    rounding = _rounding(steps) if error is None else Rounding(error)
    bounds = []
    for t, step in enumerate(steps, 1):
        listed, cap = _known_logprobs(step, f"token {t}", greedy)
        if not listed:
            return None, f"no top log-probabilities are given for token {t}"
        if vocabulary is not None and len(listed) > vocabulary:
            more = f"{len(listed)} tokens are listed for token {t}"
            raise WrongRow(f"{more}, more than the vocabulary's {vocabulary}")
        slack = SLACK + math.expm1(max(map(rounding.of, listed)))
        if (total := math.fsum(map(math.exp, listed))) > 1 + slack:
            raise WrongRow(f"the probabilities listed for token {t} sum to {total:.4g}, above 1")
        exact = rounding == Rounding()
        bounds.append(entropy_bounds(listed, vocabulary, cap, None if exact else rounding))
    return bounds, None


def listed_tokens(step: Step) -> int:
    """How many different tokens are listed with their log-probability."""
    return len({pair for pair in step.top if pair[1] is not None and pair[1] > UNLISTED})


def _rounding(steps: Sequence[Step]) -> Rounding:
    """How the log-probabilities of an answer were rounded."""
    values = [step.logprob for step in steps]
    values += [value for step in steps for _, value in step.top]
    return detect_rounding([v for v in values if v is not None and UNLISTED < v < 0])


def _known_logprobs(step: Step, where: str, greedy: bool) -> tuple[list[float], float | None]:
    """The distinct log-probabilities of a step, and a cap on those of unlisted tokens.

    The cap is a probability; null: the smallest one listed. Servers may add the chosen token to
    the k likeliest or list it twice: the list without it holds the likeliest of the other tokens.
    """
    # Different tokens of the same text differ in probability; a token listed twice does not.
    distinct = dict.fromkeys((key, known(value, where)) for key, value in step.top)
    top = [(key, value) for key, value in distinct if value is not None and value > -math.inf]
    own = known(step.logprob, where)
    others = [value for key, value in top if (key, value) != (step.key, own)]
    listed = others if own is None else [*others, own]
    if step.merged:
        return listed, 1.0
    if own is not None and listed and own <= min(listed) and not greedy:
        # It may be listed only because it was chosen.
        return listed, math.exp(min(others)) if others else 1.0
    return listed, None
