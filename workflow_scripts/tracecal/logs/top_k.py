"""Bounds of a distribution's entropy from its k most likely tokens.

With p_1 >= ... >= p_k listed, H_k = -Σ p_i ln p_i and the tail r = 1 - Σ p_i spread over V - k
tokens, none above p_k, the entropy H obeys

    H_k - m p_k ln p_k - ρ ln ρ  <=  H  <=  H_k - r ln(r / (V - k)),   m = ⌊r / p_k⌋, ρ = r - m p_k:

entropy is concave, so it is least where the tail sits on as few tokens as possible and largest
where it is uniform. Both bounds are attained. Where the p_i are known up to rounding, each term is
bounded over the values that round to those listed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

# Log-probabilities are normalised in single precision over a vocabulary: the tail's probability is
# accurate to about this much.
ROUNDING = 2.0**-19
# Decimal places that logs are rounded to; more are as good as single precision.
DECIMALS = range(1, 6)
# Fewer different values may be round by chance; to this many places that costs next to nothing.
MANY, HARMLESS = 8, 4
# The largest relative error of a number rounded to bfloat16's 8 significant bits.
BFLOAT16 = 2.0**-8
MANY_TOKENS = 2.0**53  # from which on floats have no last one


@dataclass(frozen=True)
class Rounding:
    """How far the log-probabilities listed may lie from those computed: the larger of `absolute`
    (nats) and `relative` times the log-probability.
    """

    absolute: float = 0.0
    relative: float = 0.0

    def of(self, logprobs: np.ndarray) -> np.ndarray:
        """The largest error of each log-probability, in nats."""
        return np.maximum(self.absolute, -self.relative * logprobs)


EXACT = Rounding()


@dataclass(frozen=True)
class Entropy:
    """Bounds of entropies, in nats; `middle` and `upper` are null without a vocabulary."""

    lower: np.ndarray
    middle: np.ndarray | None
    upper: np.ndarray | None


def detect_rounding(logprobs: Sequence[float] | np.ndarray) -> Rounding:
    """How an answer's log-probabilities were rounded: to decimal places, to bfloat16, or neither.

    Zeros say nothing. Up to three decimal places and bfloat16 are told from `MANY` values.
    """
    values = np.asarray(logprobs, dtype=float)
    values = values[values != 0]
    bfloat16 = not (values.astype(np.float32).view(np.uint32) & 0xFFFF).any()
    # Rounded to fewer places, they are rounded to the most, too.
    if not len(values) or not (bfloat16 or _to_places(values, DECIMALS[-1])):
        return EXACT
    many = len(np.unique(values)) >= MANY
    if many and bfloat16:
        return Rounding(relative=BFLOAT16)
    for places in DECIMALS if many else DECIMALS[HARMLESS - 1 :]:
        if _to_places(values, places):
            return Rounding(absolute=0.5 * 10.0**-places)
    return EXACT


def _to_places(values: np.ndarray, places: int) -> bool:
    """Whether values are rounded to decimal places, perhaps stored in single precision after."""
    return bool((np.abs(values - values.round(places)) <= 2.0**-23 * np.abs(values)).all())


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
