"""A claim that holds with a probability, and how often it was broken in simulations."""

import math
from dataclasses import dataclass

from scipy.stats import binom

# The share of runs that a nominal 95 % interval may miss.
MISSED = 0.07
JOINT_LEVEL = 0.01


@dataclass(frozen=True)
class Claim:
    """A claim that was `broken` in some of `runs` simulated data sets, and may be in `rate` of them.

    Three standard errors are allowed on top, which `runs` cannot tell from `rate`. One of `cells`
    claims is tested together with the others: a one-sided binomial test at 1 % over all of them.
    """

    claim: str
    runs: int
    broken: int
    rate: float
    cells: int = 0

    @property
    def allowed(self) -> float:
        """The largest share of broken runs that is no evidence against the claim."""
        if self.cells:
            return float(binom.isf(JOINT_LEVEL / self.cells, self.runs, self.rate)) / self.runs
        return self.rate + 3 * math.sqrt(self.rate * (1 - self.rate) / self.runs)

    @property
    def holds(self) -> bool:
        return self.broken <= self.allowed * self.runs
