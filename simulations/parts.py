"""Does the guaranteed error rate hold for parts of answers, which are right or wrong together?

As in `guarantees`, with named parts: each name has risks of its own, one calibrator serves all of
them, and the parts of an answer share their luck. The guarantee is of the parts that are kept, an
answer counting with at most as many as the largest of the calibration part has.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import ndtr

from simulations.claims import Claim
from simulations.guarantees import CONFIDENCE, REFERENCE, Answers, true_rate
from tracecal.calibration.bets import significance_level
from tracecal.calibration.few_labels import fit_pooled
from tracecal.calibration.fits import Fit
from tracecal.calibration.guarantee import find_guarantee, resolve_largest_group
from tracecal.calibration.rated_answers import split_answers
from tracecal.calibration.splits import make_splits


@dataclass(frozen=True)
class Population:
    """`answers` of a part for each of `risks`, (its least risk, how much that rises as the score
    falls); an answer lacks each part with the probability `lacking`, or with the probability `short`
    all but the first, and always has the first.

    `alike` in [0, 1] is how much of a score and of a part's luck all of its answer share.
    """

    answers: int
    risks: tuple[tuple[float, float], ...]
    rate: float
    alike: float
    lacking: float = 0.0
    short: float = 0.0

    def draw(self, rng: np.random.Generator, answers: int) -> tuple[Answers, np.ndarray]:
        """The parts, and the number of each one's name."""
        has = rng.random((answers, len(self.risks))) >= self.lacking
        has &= rng.random((answers, 1)) >= self.short
        has[:, 0] = True
        group, code = np.nonzero(has)
        score = self._shared(rng, group)
        least, rise = np.array(self.risks)[code].T
        risk = least + rise * ndtr(-score)
        return Answers(group, score, risk, ndtr(self._shared(rng, group)) < risk), code

    def _shared(self, rng: np.random.Generator, group: np.ndarray) -> np.ndarray:
        common = rng.normal(size=group[-1] + 1)[group]
        return np.sqrt(self.alike) * common + np.sqrt(1 - self.alike) * rng.normal(size=len(group))


POPULATIONS = {
    "five parts, alike, rate just missed": Population(80, ((0.21, 0.0),) * 5, 0.2, 0.8),
    "five parts, each right or wrong with its answer": Population(60, ((0.31, 0.0),) * 5, 0.3, 1.0),
    "five parts of different risk": Population(
        100, ((0.02, 0.1), (0.1, 0.3), (0.2, 0.4), (0.4, 0.4), (0.7, 0.2)), 0.2, 0.5
    ),
    "one name always fails": Population(80, ((0.05, 0.3), (0.1, 0.3), (1.0, 0.0)), 0.2, 0.5),
    "answers that lack half of their parts": Population(
        100, ((0.31, 0.0), (0.02, 0.1), (0.1, 0.2)), 0.15, 0.6, lacking=0.5
    ),
    "most answers have one part, the others twenty that fail together": Population(
        300, ((0.0, 0.1), *((0.2, 0.1),) * 19), 0.19, 0.9, short=0.85
    ),
    "names that fail at 1 to 60 %, together, in answers of 1 to 8": Population(
        200, tuple((least, 0.1) for least in np.linspace(0.01, 0.6, 8)), 0.2, 0.9, lacking=0.6
    ),
}


def guaranteed(
    drawn: Answers, code: np.ndarray, seed: int, population: Population
) -> tuple[Fit, float | None, int]:
    """As in `guarantees`, of the drawn parts."""
    frame = pl.DataFrame(
        {
            "example_id": [f"{place:05}" for place in range(len(code))],
            "group_id": drawn.group,
            "correct": ~drawn.wrong,
            "score": drawn.score,
            "code": code.astype(float),
        }
    )
    split = make_splits(frame.select("example_id", "group_id"), "task", seed, 1, 0.35)
    part = frame.join(split.filter(part="calibration"), on="example_id", how="semi")
    x, names = part.select("score", "code").to_numpy(), list(map(str, range(len(population.risks))))
    calibrator = fit_pooled([(x, part["correct"].to_numpy())], names)[0]
    seen, tested = split_answers(calibrator, ["score", "code"], frame, split)
    found = find_guarantee(seen, tested, population.rate, significance_level(CONFIDENCE), False)
    return calibrator, found.threshold, resolve_largest_group(seen, False, None)


def broken(population: Population, runs: int, seed: int) -> tuple[int, int]:
    """In how many of the runs a guarantee is given, and in how many a false one."""
    rng = np.random.default_rng(seed)
    reference, codes = population.draw(rng, REFERENCE)
    made = false = 0
    for run in range(runs):
        calibrator, threshold, most = guaranteed(
            *population.draw(rng, population.answers), run, population
        )
        if threshold is None:
            continue
        made += 1
        probability = calibrator.predict(np.column_stack([reference.score, codes]))
        false += true_rate(reference, probability, threshold, most) > population.rate
    return made, false


def claims(runs: int) -> Iterator[Claim]:
    for seed, (name, population) in enumerate(POPULATIONS.items()):
        made, false = broken(population, runs, seed)
        claim = f"error rate of parts ≤ {population.rate:g}: {name} ({made / runs:.0%} guaranteed)"
        yield Claim(claim, runs, false, 1 - CONFIDENCE)
