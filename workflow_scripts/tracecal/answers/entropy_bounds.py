"""Bounds of entropies from the log-probabilities of the likeliest tokens."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tracecal.answers.rounding import EXACT, Rounding

# Log-probabilities are normalised in single precision over a vocabulary: the tail's probability is
# accurate to about this much.
ROUNDING = 2.0**-19
MANY_TOKENS = 2.0**53  # from which on floats have no last one


@dataclass(frozen=True)
class Entropy:
    """Bounds of entropies, in nats; `middle` and `upper` are null without a vocabulary."""

    lower: np.ndarray
    middle: np.ndarray | None
    upper: np.ndarray | None


def entropy_bounds(
    logprobs: ArrayLike,
    vocabulary: int | None,
    cap: ArrayLike | None = None,
    rounding: Rounding = EXACT,
    tolerance: float = ROUNDING,
) -> Entropy:
    """The entropies [...] of distributions some of whose log-probabilities [..., k] are known, in
    nats and at most 0; -inf stands for none.

    `cap` is the largest probability that any other token can have; null: the smallest one known.
    `lower` and `upper` allow for the `rounding` of the inputs and for a `tolerance` of the tail's
    probability; `middle` is the midpoint of the bounds without either. `vocabulary` is V, the
    number of tokens.
    """
    values = np.asarray(logprobs, dtype=float)
    given = values > -np.inf
    values = np.where(given, values, 0.0)
    p = np.where(given, np.exp(values), 0.0)
    head, tail = _entr(p).sum(-1), _tail(p)
    lower, known, least, most, spread = head, head, tail, tail, 1.0
    cap = np.where(given, p, 1.0).min(-1) if cap is None else np.minimum(cap, 1.0)
    if rounding != EXACT:  # every known probability can be anywhere in its range
        errors = rounding.of(values)
        low = np.where(given, np.exp(values - errors), 0.0)
        high = np.where(given, np.exp(np.minimum(values + errors, 0.0)), 0.0)
        lower = np.minimum(_entr(low), _entr(high)).sum(-1)
        known = _entr(np.clip(1 / np.e, low, high)).sum(-1)
        least, most, spread = _tail(high), _tail(low), np.exp(errors.max(-1))
    allowed = tolerance * (head + 2)
    ends = np.maximum(least - tolerance, 0.0), np.minimum(most + tolerance, 1.0)
    highest = np.minimum(cap * spread, 1.0)
    lower = np.maximum(lower + _steepest_within(*ends, highest) - allowed, 0.0)
    if vocabulary is None:
        return Entropy(lower, None, None)
    rest = np.maximum(vocabulary - given.sum(-1), 0)
    widest = np.clip(rest / np.e, *ends)
    upper = known + _flattest(widest, rest) + allowed
    flattest = head + _flattest(tail, rest)
    middle = (np.minimum(head + _steepest(tail, cap), flattest) + flattest) / 2
    # Inputs rounded more coarsely than stated can contradict each other.
    return Entropy(np.minimum(lower, middle), middle, np.maximum(upper, middle))


def _tail(probabilities: np.ndarray) -> np.ndarray:
    return np.maximum(1 - probabilities.sum(-1), 0.0)


def _steepest_within(least: np.ndarray, most: np.ndarray, cap: np.ndarray) -> np.ndarray:
    """The smallest `_steepest` of a tail between `least` and `most`.

    It is concave between multiples of `cap` and rises from one multiple to the next.
    """
    with np.errstate(all="ignore"):
        multiple = np.ceil(least / cap) * cap
    between = (multiple <= most) & (least < MANY_TOKENS * cap)
    tails = np.stack([least, most, np.where(between, multiple, most)])
    return _steepest(tails, cap).min(0)


def _steepest(tail: np.ndarray, cap: np.ndarray) -> np.ndarray:
    """The least entropy that a tail of tokens with at most `cap` each can add."""
    with np.errstate(all="ignore"):
        # A quotient rounded to just below a whole number changes nothing: then ρ is p_k.
        whole = np.floor(tail / cap)
        added = whole * _entr(cap) + _entr(np.maximum(tail - whole * cap, 0.0))
        # So many tokens that the last one counts for nothing.
        added = np.where(tail < MANY_TOKENS * cap, added, -tail * np.log(cap))
    return np.where((tail > 0) & (cap > 0), added, 0.0)


def _flattest(tail: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """The most entropy that a tail can add, spread evenly over `tokens`."""
    return np.where(tokens > 0, _entr(tail) + tail * np.log(np.maximum(tokens, 1)), 0.0)


def _entr(p: np.ndarray) -> np.ndarray:
    """-p ln p, 0 for 0."""
    return -p * np.log(np.where(p > 0, p, 1.0))
