"""Bounds of a distribution's entropy from its k most likely tokens.

With p_1 >= ... >= p_k listed, H_k = -Σ p_i ln p_i and the tail r = 1 - Σ p_i spread over V - k
tokens, none above p_k, the entropy H obeys

    H_k - m p_k ln p_k - ρ ln ρ  <=  H  <=  H_k - r ln(r / (V - k)),   m = ⌊r / p_k⌋, ρ = r - m p_k:

entropy is concave, so it is least where the tail sits on as few tokens as possible and largest
where it is uniform. Both bounds are attained. Where the p_i are known up to rounding, each term is
bounded over the values that round to those listed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Log-probabilities are normalised in single precision over a vocabulary: the tail's probability is
# accurate to about this much.
ROUNDING = 2.0**-19
# Decimal places that logs are rounded to; more are as good as single precision.
DECIMALS = range(1, 6)
# Fewer different values may be round by chance; to this many places that costs next to nothing.
MANY, HARMLESS = 8, 4
# The largest relative error of a number rounded to bfloat16's 8 significant bits.
BFLOAT16 = 2.0**-8


@dataclass(frozen=True)
class Rounding:
    """How far the log-probabilities listed may lie from those computed: the larger of `absolute`
    (nats) and `relative` times the log-probability.
    """

    absolute: float = 0.0
    relative: float = 0.0

    def of(self, logprob: float) -> float:
        """The largest error of one log-probability, in nats."""
        return max(self.absolute, -self.relative * logprob)


@dataclass(frozen=True)
class Entropy:
    """Bounds of one entropy, in nats; `middle` and `upper` are null without a vocabulary."""

    lower: float
    middle: float | None
    upper: float | None


def detect_rounding(logprobs: Sequence[float] | np.ndarray) -> Rounding:
    """How an answer's log-probabilities were rounded: to decimal places, to bfloat16, or neither.

    Zeros say nothing. Up to three decimal places and bfloat16 are told from `MANY` values.
    """
    values = np.asarray(logprobs, dtype=float)
    values = values[values != 0]
    bfloat16 = not (values.astype(np.float32).view(np.uint32) & 0xFFFF).any()
    # Rounded to fewer places, they are rounded to the most, too.
    if not len(values) or not (bfloat16 or _to_places(values, DECIMALS[-1])):
        return Rounding()
    many = len(np.unique(values)) >= MANY
    if many and bfloat16:
        return Rounding(relative=BFLOAT16)
    for places in DECIMALS if many else DECIMALS[HARMLESS - 1 :]:
        if _to_places(values, places):
            return Rounding(absolute=0.5 * 10.0**-places)
    return Rounding()


def _to_places(values: np.ndarray, places: int) -> bool:
    """Whether values are rounded to decimal places, perhaps stored in single precision after."""
    return bool((np.abs(values - values.round(places)) <= 2.0**-23 * np.abs(values)).all())


def entropy_bounds(
    logprobs: Sequence[float],
    vocabulary: int | None,
    cap: float | None = None,
    rounding: Rounding | None = None,
    tolerance: float = ROUNDING,
) -> Entropy:
    """The entropy of a distribution, some of whose log-probabilities (nats, <= 0) are known.

    `cap` is the largest probability that any other token can have; null: the smallest one known.
    `lower` and `upper` allow for the `rounding` of the inputs and for a `tolerance` of the tail's
    probability; `middle` is the midpoint of the bounds without either. `vocabulary` is V, the
    number of tokens.
    """
    probabilities = [math.exp(value) for value in logprobs]
    head, tail = sum(map(_entr, probabilities)), _tail(probabilities)
    cap = min(probabilities) if cap is None else min(cap, 1.0)
    least, most, lower, known, highest = probabilities, probabilities, head, head, cap
    if rounding is not None:
        # Every known probability can be anywhere in its range.
        errors = [rounding.of(value) for value in logprobs]
        least = [math.exp(value - error) for value, error in zip(logprobs, errors, strict=True)]
        most = [min(math.exp(v + error), 1.0) for v, error in zip(logprobs, errors, strict=True)]
        lower = sum(min(_entr(a), _entr(b)) for a, b in zip(least, most, strict=True))
        known = sum(_entr(min(max(1 / math.e, a), b)) for a, b in zip(least, most, strict=True))
        highest = min(cap * math.exp(max(errors, default=0.0)), 1.0)
    allowed = tolerance * (head + 2)
    ends = max(_tail(most) - tolerance, 0.0), min(_tail(least) + tolerance, 1.0)
    lower = max(lower + _steepest_within(*ends, highest) - allowed, 0.0)
    if vocabulary is None:
        return Entropy(lower, None, None)
    rest = max(vocabulary - len(probabilities), 0)
    upper = known + _flattest(min(max(rest / math.e, ends[0]), ends[1]), rest) + allowed
    flattest = head + _flattest(tail, rest)
    middle = (min(head + _steepest(tail, cap), flattest) + flattest) / 2
    # Inputs rounded more coarsely than stated can contradict each other.
    return Entropy(min(lower, middle), middle, max(upper, middle))


def _tail(probabilities: Sequence[float]) -> float:
    return max(1 - math.fsum(probabilities), 0.0)


def _steepest_within(least: float, most: float, cap: float) -> float:
    """The smallest `_steepest` of a tail between `least` and `most`.

    It is concave between multiples of `cap` and rises from one multiple to the next.
    """
    values = [_steepest(least, cap), _steepest(most, cap)]
    multiple = math.ceil(least / cap) * cap if cap > 0 and least / cap < 2**53 else most
    return min(*values, _steepest(multiple, cap)) if multiple <= most else min(values)


def _steepest(tail: float, cap: float) -> float:
    """The least entropy that a tail of tokens with at most `cap` each can add."""
    if tail <= 0 or cap <= 0:
        return 0.0
    if tail / cap > 2**53:  # so many tokens that the last one counts for nothing
        return -tail * math.log(cap)
    # A quotient rounded to just below a whole number changes nothing: then ρ is p_k.
    whole = math.floor(tail / cap)
    return whole * _entr(cap) + _entr(max(tail - whole * cap, 0.0))


def _flattest(tail: float, tokens: int) -> float:
    """The most entropy that a tail can add, spread evenly over `tokens`."""
    return -tail * math.log(tail / tokens) if tail > 0 and tokens else 0.0


def _entr(p: float) -> float:
    return -p * math.log(p) if p > 0 else 0.0
