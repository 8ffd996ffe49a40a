"""Bounds of a distribution's entropy from its k most likely tokens.

With p_1 >= ... >= p_k listed, H_k = -Σ p_i ln p_i and the tail r = 1 - Σ p_i spread over V - k
tokens, none above p_k, the entropy H obeys

    H_k - m p_k ln p_k - ρ ln ρ  <=  H  <=  H_k - r ln(r / (V - k)),   m = ⌊r / p_k⌋, ρ = r - m p_k:

entropy is concave, so it is least where the tail sits on as few tokens as possible and largest
where it is uniform. Both bounds are attained.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Log-probabilities are normalised in single precision over a vocabulary: the tail's probability is
# accurate to about this much.
ROUNDING = 2.0**-19


@dataclass(frozen=True)
class Entropy:
    """Bounds of one entropy, in nats; `middle` and `upper` are null without a vocabulary."""

    lower: float
    middle: float | None
    upper: float | None


def entropy_bounds(
    logprobs: Sequence[float],
    vocabulary: int | None,
    cap: float | None = None,
    rounding: float = ROUNDING,
) -> Entropy:
    """The entropy of a distribution, some of whose log-probabilities (nats, <= 0) are known.

    `cap` is the largest probability that any other token can have; null: the smallest one known.
    `lower` and `upper` allow for the `rounding` of the inputs; `middle` is the midpoint of the
    bounds without that allowance. `vocabulary` is V, the number of tokens.
    """
    probabilities = [math.exp(value) for value in logprobs]
    cap = min(probabilities) if cap is None else cap
    head = sum(_entr(p) for p in probabilities)
    tail = max(1 - math.fsum(probabilities), 0.0)
    lower = head + _steepest(tail, cap)
    # Rounding can move the tail, and every known term.
    spread = rounding * (head + 2)
    nearby = [_steepest(max(tail + moved, 0.0), cap) for moved in (-rounding, 0.0, rounding)]
    least = max(head + min(nearby) - spread, 0.0)
    if vocabulary is None:
        return Entropy(least, None, None)
    rest = max(vocabulary - len(probabilities), 0)
    upper = head + _flattest(tail, rest)
    most = head + _flattest(min(tail + rounding, 1.0), rest) + spread
    return Entropy(least, (min(lower, upper) + upper) / 2, most)


def _steepest(tail: float, cap: float) -> float:
    """The least entropy that a tail of tokens with at most `cap` each can add."""
    cap = min(cap, 1.0)
    if tail <= 0 or cap <= 0:
        return 0.0
    # A quotient rounded to just below a whole number changes nothing: then ρ is p_k.
    whole = math.floor(tail / cap)
    return whole * _entr(cap) + _entr(max(tail - whole * cap, 0.0))


def _flattest(tail: float, tokens: int) -> float:
    """The most entropy that a tail can add, spread evenly over `tokens`."""
    return -tail * math.log(tail / tokens) if tail > 0 and tokens else 0.0


def _entr(p: float) -> float:
    return -p * math.log(p) if p > 0 else 0.0
