"""What is claimed with a probability, and how often it failed in simulations."""

import math
from dataclasses import dataclass

# What is asked of an interval of nominal 95 %.
MISSED = 0.07


@dataclass(frozen=True)
class Claim:
    """In `runs` simulated data sets the claim was `broken` so often; it may be in `rate` of them.

    What `runs` cannot tell from `rate` is allowed too: three standard errors.
    """

    claim: str
    runs: int
    broken: int
    rate: float

    @property
    def allowed(self) -> float:
        """The largest share of broken runs that does not speak against the claim."""
        return self.rate + 3 * math.sqrt(self.rate * (1 - self.rate) / self.runs)

    @property
    def holds(self) -> bool:
        return self.broken <= self.allowed * self.runs
