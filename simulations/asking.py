"""Does an error rate hold that was promised from labels asked for one after the other?

Tasks are drawn from the populations of `guarantees`, and labels are asked for until the search ends
or a random number of them is given. The promise is broken where the error rate above the threshold,
of the answers drawn ('finite') or of the population ('further'), is above the target.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from simulations.claims import Claim
from simulations.guarantees import (
    CONFIDENCE,
    POPULATIONS,
    REFERENCE,
    Answers,
    Population,
    true_rate,
)
from tracecal.calibration.guarantees import error_level
from tracecal.calibration.labelling import NoMoreLabels, Pool, promise
from tracecal.calibration.labelling import Population as Whom


def threshold(drawn: Answers, rate: float, whom: Whom, most: int) -> float | None:
    """The threshold that is promised after at most so many labels."""
    seen: set[int] = set()

    def wrong(answer: int) -> bool:
        if answer not in seen and len(seen) >= most:
            raise NoMoreLabels
        seen.add(answer)
        return bool(drawn.wrong[answer])

    pool = Pool(drawn.group, drawn.score)
    return promise(pool, wrong, rate, error_level(CONFIDENCE), whom).threshold


def rate_of(drawn: Answers, above: float) -> float:
    """The error rate of a random kept answer of the groups drawn, each of which counts alike."""
    weight = (drawn.score >= above) / np.bincount(drawn.group)[drawn.group]
    return float((weight * drawn.wrong).sum() / weight.sum())


def broken(population: Population, whom: Whom, runs: int, seed: int) -> tuple[int, int]:
    """In how many of the runs something is promised, and in how many falsely."""
    rng = np.random.default_rng(seed)
    reference = population.draw(rng, REFERENCE)
    made = false = 0
    for _ in range(runs):
        drawn = population.draw(rng, population.groups)
        most = int(rng.integers(20, len(drawn.group) + 1))
        found = threshold(drawn, population.rate, whom, most)
        if found is None:
            continue
        made += 1
        rate = (
            rate_of(drawn, found)
            if whom == "finite"
            else true_rate(reference, reference.score, found)
        )
        false += rate > population.rate + 1e-12
    return made, false


def claims(runs: int, populations: Mapping[str, Population] = POPULATIONS) -> Iterator[Claim]:
    for seed, (name, population) in enumerate(populations.items()):
        for whom in ("finite", "further"):
            made, false = broken(population, whom, runs, seed)
            claim = f"labels asked for, {whom}: {name} ({made / runs:.0%} promised)"
            yield Claim(claim, runs, false, 1 - CONFIDENCE)
