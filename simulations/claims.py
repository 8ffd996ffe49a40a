"""A claim that holds with a probability, and how often it was broken in simulations."""

import math
from dataclasses import dataclass

# The share of runs that a nominal 95 % interval may miss.
MISSED = 0.07


@dataclass(frozen=True)
class Claim:
    """A claim that was `broken` in some of `runs` simulated data sets, and may be in `rate` of them.

    Three standard errors are allowed on top, which `runs` cannot tell from `rate`.
    """

    claim: str
    runs: int
    broken: int
    rate: float

    @property
    def allowed(self) -> float:
        """The largest share of broken runs that is no evidence against the claim."""
        return self.rate + 3 * math.sqrt(self.rate * (1 - self.rate) / self.runs)

    @property
    def holds(self) -> bool:
        return self.broken <= self.allowed * self.runs
