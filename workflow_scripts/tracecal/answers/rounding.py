"""How log-probabilities were rounded before they were written."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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

    def of(self, logprobs: np.ndarray) -> np.ndarray:
        """The largest error of each log-probability, in nats."""
        return np.maximum(self.absolute, -self.relative * logprobs)


EXACT = Rounding()


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
