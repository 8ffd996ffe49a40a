"""How log-probabilities were rounded: to decimal places, to bfloat16, or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Decimal places that logs are rounded to; more are as good as single precision.
DECIMALS = range(1, 6)
# Fewer distinct values may be round by chance; rounding to this many places does no harm then.
MANY, HARMLESS = 8, 4
# The largest relative error of a number rounded to the 8 significant bits of bfloat16.
BFLOAT16 = 2.0**-8


@dataclass(frozen=True)
class Rounding:
    """The largest error of a log-probability: the larger of `absolute` (nats) and `relative`
    times the log-probability.
    """

    absolute: float = 0.0
    relative: float = 0.0

    def errors(self, logprobs: np.ndarray) -> np.ndarray:
        """The largest error of each log-probability, in nats."""
        return np.maximum(self.absolute, -self.relative * logprobs)


EXACT = Rounding()


def detect_rounding(logprobs: Sequence[float] | np.ndarray) -> Rounding:
    """Detect how the log-probabilities of an answer were rounded.

    Zeros tell nothing. Up to three decimal places, and bfloat16, take `MANY` distinct values.

    >>> detect_rounding([-0.2512, -1.5021, -3.1415])
    Rounding(absolute=5e-05, relative=0.0)
    """
    values = np.asarray(logprobs, dtype=float)
    values = values[values != 0]
    bfloat16 = not (values.astype(np.float32).view(np.uint32) & 0xFFFF).any()
    # Values of fewer places are values of the most places, too.
    if not len(values) or not (bfloat16 or _has_places(values, DECIMALS[-1])):
        return EXACT
    many = len(np.unique(values)) >= MANY
    if many and bfloat16:
        return Rounding(relative=BFLOAT16)
    for places in DECIMALS if many else DECIMALS[HARMLESS - 1 :]:
        if _has_places(values, places):
            return Rounding(absolute=0.5 * 10.0**-places)
    return EXACT


def _has_places(values: np.ndarray, places: int) -> bool:
    """Whether all values have so many decimal places, perhaps stored in single precision after."""
    return bool((np.abs(values - values.round(places)) <= 2.0**-23 * np.abs(values)).all())
