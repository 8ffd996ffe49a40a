"""What the k most likely tokens tell of the entropy of the whole distribution.

With p_1 >= ... >= p_k listed, H_k = -Σ p_i ln p_i and the tail r = 1 - Σ p_i spread over V - k
tokens of which none is above p_k, the entropy H obeys

    H_k - m p_k ln p_k - ρ ln ρ  <=  H  <=  H_k - r ln(r / (V - k)),   m = ⌊r / p_k⌋, ρ = r - m p_k:

entropy is concave, so it is least where the tail sits on as few tokens as it can and most where
it is even. Both are attained.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Log-probabilities are single-precision numbers summed over a vocabulary: what they leave of 1 is
# known to about this much.
ROUNDING = 2.0**-19


@dataclass(frozen=True)
class Entropy:
    """What is known of one entropy, in nats; `middle` and `upper` are null without a vocabulary."""

    lower: float
    middle: float | None
    upper: float | None


def entropy_bounds(
    logprobs: Sequence[float],
    vocabulary: int | None,
    cap: float | None = None,
    rounding: float = ROUNDING,
) -> Entropy:
    """The entropy of a distribution of which some log-probabilities (nats, <= 0) are known.

    `cap` is the most that any other token can have, the smallest one listed where null.
    `lower` and `upper` allow for the `rounding` of the numbers given; `middle` lies halfway
    between the bounds as the formulas have them. `vocabulary` is V, its number of tokens.
    """
    probabilities = [math.exp(value) for value in logprobs]
    cap = min(probabilities) if cap is None else cap
    listed = sum(_entr(p) for p in probabilities)
    tail = max(1 - math.fsum(probabilities), 0.0)
    lower = listed + _steepest(tail, cap)
    # Rounding can move the tail, and every term listed.
    spread = rounding * (listed + 2)
    nearby = [_steepest(max(tail + moved, 0.0), cap) for moved in (-rounding, 0.0, rounding)]
    least = max(listed + min(nearby) - spread, 0.0)
    if vocabulary is None:
        return Entropy(least, None, None)
    rest = max(vocabulary - len(probabilities), 0)
    upper = listed + _flattest(tail, rest)
    most = listed + _flattest(min(tail + rounding, 1.0), rest) + spread
    return Entropy(least, (min(lower, upper) + upper) / 2, most)


def _steepest(tail: float, cap: float) -> float:
    """The least entropy that a tail can add whose tokens have at most `cap` each."""
    cap = min(cap, 1.0)
    if tail <= 0 or cap <= 0:
        return 0.0
    # A quotient that rounding leaves just below a whole number changes nothing: ρ is p_k then.
    whole = math.floor(tail / cap)
    return whole * _entr(cap) + _entr(max(tail - whole * cap, 0.0))


def _flattest(tail: float, tokens: int) -> float:
    """The most entropy that a tail can add, spread evenly over `tokens`."""
    return -tail * math.log(tail / tokens) if tail > 0 and tokens else 0.0


def _entr(p: float) -> float:
    return -p * math.log(p) if p > 0 else 0.0
