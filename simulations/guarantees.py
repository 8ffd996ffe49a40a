"""Does the guaranteed error rate hold, from drawn splits over the fit to the threshold?

Each population says how a group comes about: its size, the scores of its answers and their risks.
Runs draw a task from it, and the guarantee is broken where the true share of wrong ones among the
answers that the threshold keeps, of groups counting with at most as many as the guarantee says, is
above the wished rate. Most populations are unfavourable: the true rate is a little above the wished
one, so that any guarantee is a false one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import ndtr

from simulations.claims import Claim
from tracecal.calibration.bets import significance_level
from tracecal.calibration.fits import Fit, fit
from tracecal.calibration.guarantee import find_guarantees, resolve_largest_group
from tracecal.calibration.rated_answers import split_answers
from tracecal.calibration.splits import make_splits

CONFIDENCE = 0.9
REFERENCE = 20_000  # groups by which the true error rates are known


@dataclass(frozen=True)
class Answers:
    """Answers in order of their groups: arrays [answers]."""

    group: np.ndarray
    score: np.ndarray
    risk: np.ndarray
    wrong: np.ndarray


@dataclass(frozen=True)
class Population:
    """`sizes` of groups, equally frequent; `risk` of an answer by its score and its group's size.

    `alike` in [0, 1] is how much of a score and of an answer's luck all of its group share.
    `score` makes a score of a standard normal number, which `lift` raises for groups that are not
    single. With how many answers a group counts at most may be stated (`largest`), and thresholds
    for `stricter` rates be sought beside that for `rate`.
    """

    groups: int
    sizes: tuple[int, ...]
    risk: Callable[[np.ndarray, np.ndarray], np.ndarray]
    rate: float
    alike: float = 0.0
    score: Callable[[np.ndarray], np.ndarray] = lambda x: x
    lift: float = 0.0
    largest: int | None = None
    stricter: tuple[float, ...] = ()

    def draw(self, rng: np.random.Generator, groups: int) -> Answers:
        size = rng.choice(self.sizes, groups)
        group = np.repeat(np.arange(groups), size)
        score = self.score(self._shared(rng, group) + self.lift * (size[group] > 1))
        risk = self.risk(score, size[group])
        return Answers(group, score, risk, ndtr(self._shared(rng, group)) < risk)

    def _shared(self, rng: np.random.Generator, group: np.ndarray) -> np.ndarray:
        """Standard normal numbers of the answers, those of a group correlated by `alike`."""
        common = rng.normal(size=group[-1] + 1)[group]
        return np.sqrt(self.alike) * common + np.sqrt(1 - self.alike) * rng.normal(size=len(group))


def flat(risk: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda score, size: np.full(len(score), risk)


def falling(score: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Of the answers with the best scores a fifth is wrong, of the worst nearly all."""
    return 0.1 + 0.8 / (1 + np.exp(2 * score - 0.5))


def by_size(
    small: float, large: float, most: int = 1
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda score, size: np.where(size <= most, small, large)


def confidently_wrong(score: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The best scores mislead: their risk is just too high, below it falls."""
    return np.where(score > 0.8, 0.32, np.where(score > -0.5, 0.2, 0.6))


def steps(score: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Nearly all of the better half is right, and a third of the rest wrong."""
    return np.where(score > 0, 0.04, 0.35)


# Of a large model: many answers, most right, on which a fit of one score says at most 0.96.
LARGE = {
    "large model, the fit saturates, target just missed": Population(
        1500,
        (1,),
        lambda s, _: np.where(s >= 0.3, 0.055, 0.3),
        0.05,
        score=lambda x: np.minimum(x, 0.3),
    ),
    "large model, two steps of risk": Population(1500, (1,), steps, 0.05),
    "large model, the most confident mislead": Population(
        1000, (1,), lambda s, _: np.where(s > 1.2, 0.3, np.where(s > 0, 0.05, 0.4)), 0.2
    ),
}
POPULATIONS = LARGE | {
    "single answers, rate just missed": Population(260, (1,), flat(0.21), 0.2),
    "single answers, risk falls with the score": Population(260, (1,), falling, 0.3),
    "single answers, the best scores mislead": Population(260, (1,), confidently_wrong, 0.3),
    "groups of 4, alike": Population(100, (4,), flat(0.31), 0.3, alike=0.8),
    "groups of 4, hardly alike": Population(100, (4,), flat(0.21), 0.2, alike=0.1),
    "groups of 4, risk falls with the score": Population(100, (4,), falling, 0.3, alike=0.5),
    "groups of 1 and 7, the large ones worse": Population(
        200, (1, 7), by_size(0.05, 0.24), 0.21, alike=0.5
    ),
    "groups of 1 and 7, the small ones worse": Population(
        200, (1, 7), by_size(0.30, 0.05), 0.08, alike=0.5
    ),
    "groups of 1 and 7, a wrong member is a wrong group": Population(
        200, (1, 7), by_size(0.05, 0.24), 0.21, alike=1.0
    ),
    "groups of 1 and 7, the large ones kept first and wrong": Population(
        200, (1, 7), by_size(0.02, 0.22), 0.2, alike=0.3, lift=1.0
    ),
    "groups of 1, 2, 3 and 20, the large ones worse": Population(
        900, (1, 2, 3, 20), by_size(0.05, 0.25, 3), 0.2, alike=0.5
    ),
    "groups of 1 to 5, wrong as a whole": Population(
        300, (1, 2, 3, 4, 5), by_size(0.1, 0.24, 2), 0.2, alike=1.0
    ),
    "ties: three different scores": Population(
        100, (1, 4), flat(0.31), 0.3, alike=0.5, score=lambda x: np.clip(np.round(x), -1, 1)
    ),
    "one constant score": Population(100, (1, 4), flat(0.31), 0.3, alike=0.5, score=np.zeros_like),
}


# Large groups are so rare that a calibration part may hold none; and rates that take a stricter
# one's threshold.
APART = {
    "one group in a hundred has 20, stated": Population(
        1500, (1,) * 99 + (20,), by_size(0.02, 0.7), 0.13, alike=1.0, largest=20
    ),
    "groups of 1, 2, 3 and 20 that count with 5": Population(
        300, (1, 2, 3, 20), by_size(0.1, 0.28, 3), 0.175, alike=0.5, largest=5
    ),
    **{
        f"{groups} single answers, just missed, or by a stricter rate": Population(
            groups, (1,), flat(0.405), 0.4, stricter=(0.05, 0.1, 0.2, 0.3)
        )
        for groups in (24, 60, 260)
    },
    "stricter rates, risk falls with the score": Population(
        120, (1,), falling, 0.3, stricter=(0.05, 0.1, 0.2, 0.25)
    ),
}


def true_rate(
    reference: Answers, probability: np.ndarray, threshold: float, most: int = 1
) -> float:
    """The share of wrong ones among kept answers, of groups that count with at most so many."""
    sizes = np.bincount(reference.group)[reference.group]
    weight = (probability >= threshold) / np.maximum(sizes, most)
    return float((weight * reference.risk).sum() / weight.sum())


def guaranteed(drawn: Answers, seed: int, population: Population) -> tuple[Fit, float | None, int]:
    """The calibrator of a split of the drawn answers, the threshold for its rate, and with
    how many answers a group counts at most.
    """
    frame = pl.DataFrame(
        {
            "example_id": [f"{place:05}" for place in range(len(drawn.group))],
            "group_id": drawn.group,
            "correct": ~drawn.wrong,
            "score": drawn.score,
        }
    )
    split = make_splits(frame.select("example_id", "group_id"), "task", seed, 1, 0.35)
    part = frame.join(split.filter(part="calibration"), on="example_id", how="semi")
    calibrator = fit(part.select("score").to_numpy(), part["correct"].to_numpy(), "platt")
    seen, tested = split_answers(calibrator, ["score"], frame, split)
    single = population.sizes == (1,)
    rates, largest = (*population.stricter, population.rate), population.largest
    found = find_guarantees(seen, tested, rates, significance_level(CONFIDENCE), single, largest)[
        -1
    ]
    return calibrator, found.threshold, resolve_largest_group(seen, single, largest)


def broken(population: Population, runs: int, seed: int) -> tuple[int, int]:
    """In how many of the runs a guarantee is given, and in how many a false one."""
    rng = np.random.default_rng(seed)
    reference = population.draw(rng, REFERENCE)
    made = false = 0
    for run in range(runs):
        drawn = population.draw(rng, population.groups)
        calibrator, threshold, most = guaranteed(drawn, run, population)
        if threshold is None:
            continue
        made += 1
        probability = calibrator.predict(reference.score[:, None])
        false += true_rate(reference, probability, threshold, most) > population.rate
    return made, false


def claims(
    runs: int, populations: Mapping[str, Population] = POPULATIONS | APART
) -> Iterator[Claim]:
    for seed, (name, population) in enumerate(populations.items()):
        made, false = broken(population, runs, seed)
        claim = f"error rate ≤ {population.rate:g}: {name} ({made / runs:.0%} guaranteed)"
        yield Claim(claim, runs, false, 1 - CONFIDENCE)
