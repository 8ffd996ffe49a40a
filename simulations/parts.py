"""Does a guaranteed error rate hold for parts of answers, which are right or wrong together?

As in `guarantees`, with named parts: names differ in their risks, one calibrator serves all of them,
and the parts of an answer share their luck. The guarantee is about the kept parts.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from simulations.claims import Claim
from simulations.guarantees import CONFIDENCE, REFERENCE, SimulatedAnswers
from tracecal.answers.groups import FIT_SHARE
from tracecal.fits.fits import Fit
from tracecal.fits.pooled import fit_pooled
from tracecal.guarantees.line import significance_level
from tracecal.guarantees.part_tests import PartScores, RankedParts, most_parts


@dataclass(frozen=True)
class PartPopulation:
    """A population of answers with named parts.

    Attributes
    ----------
    answers : int
        Answers of a task.
    risks : tuple of pairs
        For each name the lowest risk of a part, and how much it rises as the score falls.
    rate : float
        Target error rate.
    correlation : float
        Share of a score and of a part's luck that its whole answer has in common.
    lacking : float
        Probability that an answer lacks a part, other than the first.
    short : float
        Probability that an answer has only its first part.
    """

    answers: int
    risks: tuple[tuple[float, float], ...]
    rate: float
    correlation: float
    lacking: float = 0.0
    short: float = 0.0

    def draw(self, rng: np.random.Generator, answers: int) -> tuple[SimulatedAnswers, np.ndarray]:
        """Draw parts, and the number of each part's name."""
        has = rng.random((answers, len(self.risks))) >= self.lacking
        has &= rng.random((answers, 1)) >= self.short
        has[:, 0] = True
        group, code = np.nonzero(has)
        score = self._correlated(rng, group)
        lowest, rise = np.array(self.risks)[code].T
        risk = lowest + rise * ndtr(-score)
        return SimulatedAnswers(group, score, risk, ndtr(self._correlated(rng, group)) < risk), code

    def _correlated(self, rng: np.random.Generator, group: np.ndarray) -> np.ndarray:
        common = rng.normal(size=group[-1] + 1)[group]
        return np.sqrt(self.correlation) * common + np.sqrt(1 - self.correlation) * rng.normal(
            size=len(group)
        )


POPULATIONS = {
    "five parts, alike, rate just missed": PartPopulation(80, ((0.21, 0.0),) * 5, 0.2, 0.8),
    "five parts, each right or wrong with its answer": PartPopulation(
        60, ((0.31, 0.0),) * 5, 0.3, 1.0
    ),
    "five parts of different risk": PartPopulation(
        100, ((0.02, 0.1), (0.1, 0.3), (0.2, 0.4), (0.4, 0.4), (0.7, 0.2)), 0.2, 0.5
    ),
    "one name always fails": PartPopulation(80, ((0.05, 0.3), (0.1, 0.3), (1.0, 0.0)), 0.2, 0.5),
    "answers that lack half of their parts": PartPopulation(
        100, ((0.31, 0.0), (0.02, 0.1), (0.1, 0.2)), 0.15, 0.6, lacking=0.5
    ),
    "most answers have one part, the others twenty that fail together": PartPopulation(
        300, ((0.0, 0.1), *((0.2, 0.1),) * 19), 0.19, 0.9, short=0.85
    ),
    "names that fail at 1 to 60 %, together, in answers of 1 to 8": PartPopulation(
        200, tuple((lowest, 0.1) for lowest in np.linspace(0.01, 0.6, 8)), 0.2, 0.9, lacking=0.6
    ),
}


def find_threshold(
    parts: SimulatedAnswers, code: np.ndarray, seed: int, population: PartPopulation
) -> tuple[Fit, float | None, int]:
    """The fit on a fifth of the documents, the guaranteed threshold, and the limit on parts."""
    _, number, sizes = np.unique(parts.group, return_inverse=True, return_counts=True)
    order = np.random.default_rng([seed, 1]).permutation(len(sizes))[number]
    fits = order < round(FIT_SHARE * len(sizes))
    x = np.column_stack([parts.score, code])
    names = [str(number) for number in range(len(population.risks))]
    calibrator = fit_pooled([(x[fits], ~parts.wrong[fits])], names)[0]
    scores = PartScores(calibrator.predict(x), order, sizes[number])
    tested, others, limit = scores.select(~fits), scores.select(fits), most_parts(sizes)
    ranked = RankedParts(tested, parts.wrong[~fits], others, limit)
    (test,) = ranked.test([population.rate], significance_level(CONFIDENCE))
    return calibrator, test.threshold, limit


def count_broken(population: PartPopulation, runs: int, seed: int) -> tuple[int, int]:
    """Count the runs with a guarantee, and those with a broken one."""
    rng = np.random.default_rng(seed)
    reference, codes = population.draw(rng, REFERENCE)
    sizes = np.bincount(reference.group)[reference.group]
    n_guaranteed = n_broken = 0
    for run in range(runs):
        parts, code = population.draw(rng, population.answers)
        calibrator, threshold, limit = find_threshold(parts, code, run, population)
        if threshold is None:
            continue
        n_guaranteed += 1
        probability = calibrator.predict(np.column_stack([reference.score, codes]))
        is_kept = (probability >= threshold) & (sizes <= limit)
        n_broken += is_kept.any() and reference.risk[is_kept].mean() > population.rate
    return n_guaranteed, n_broken


def claims(runs: int) -> Iterator[Claim]:
    for seed, (name, population) in enumerate(POPULATIONS.items()):
        n_guaranteed, n_broken = count_broken(population, runs, seed)
        share = f"{100 * n_guaranteed / runs:.0f} % guaranteed"
        claim = f"error rate of parts ≤ {population.rate:g}: {name} ({share})"
        yield Claim(claim, runs, n_broken, 1 - CONFIDENCE)
