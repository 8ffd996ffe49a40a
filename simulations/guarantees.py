"""Does a guaranteed error rate hold, through the fit on a fifth of the labels and the test on the others?

A population generates groups: their sizes, and the scores and risks of their answers. Each run draws
a task. A guarantee is broken if the true error rate of the kept answers exceeds the target. Most populations are unfavourable: their true rate is a little above
the target, so that any guarantee is false.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from simulations.claims import Claim
from tracecal.calibration.bets import significance_level
from tracecal.calibration.fits import Fit, fit
from tracecal.calibration.groups import largest_group as choose_largest_group
from tracecal.calibration.guarantees.error_rate import GroupedScores, find_thresholds
from tracecal.calibration.guarantees.sides import FIT_SHARE

CONFIDENCE = 0.9
REFERENCE = 20_000  # groups that stand for the truth


@dataclass(frozen=True)
class SimulatedAnswers:
    """Answers in the order of their groups, with their true risks: arrays [answers]."""

    group: np.ndarray
    score: np.ndarray
    risk: np.ndarray
    wrong: np.ndarray


@dataclass(frozen=True)
class GroupPopulation:
    """A population of groups.

    Attributes
    ----------
    groups : int
        Groups of a task.
    sizes : tuple of int
        Sizes of groups, equally frequent.
    risk : callable
        Risk of answers, from their scores and their groups' sizes.
    rate : float
        Target error rate.
    correlation : float
        Share of a score and of an answer's luck that its whole group has in common.
    score : callable
        Makes scores of standard normal numbers.
    lift : float
        What is added to these numbers in groups of several answers.
    largest_group : int, optional
        Answers of larger groups are never kept.
    stricter : tuple of float
        Smaller target rates, tested as well.
    """

    groups: int
    sizes: tuple[int, ...]
    risk: Callable[[np.ndarray, np.ndarray], np.ndarray]
    rate: float
    correlation: float = 0.0
    score: Callable[[np.ndarray], np.ndarray] = lambda x: x
    lift: float = 0.0
    largest_group: int | None = None
    stricter: tuple[float, ...] = ()

    def draw(self, rng: np.random.Generator, groups: int) -> SimulatedAnswers:
        size = rng.choice(self.sizes, groups)
        group = np.repeat(np.arange(groups), size)
        score = self.score(self._correlated(rng, group) + self.lift * (size[group] > 1))
        risk = self.risk(score, size[group])
        return SimulatedAnswers(group, score, risk, ndtr(self._correlated(rng, group)) < risk)

    def _correlated(self, rng: np.random.Generator, group: np.ndarray) -> np.ndarray:
        """Standard normal numbers of the answers, correlated within groups."""
        common = rng.normal(size=group[-1] + 1)[group]
        return np.sqrt(self.correlation) * common + np.sqrt(1 - self.correlation) * rng.normal(
            size=len(group)
        )


def constant_risk(risk: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda score, size: np.full(len(score), risk)


def falling_risk(score: np.ndarray, size: np.ndarray) -> np.ndarray:
    """A fifth of the answers with the best scores is wrong, and nearly all of those with the worst."""
    return 0.1 + 0.8 / (1 + np.exp(2 * score - 0.5))


def risk_by_size(
    small: float, large: float, largest_small: int = 1
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda score, size: np.where(size <= largest_small, small, large)


def misleading_risk(score: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The best scores mislead: their risk is just too high, and below them it is lower."""
    return np.where(score > 0.8, 0.32, np.where(score > -0.5, 0.2, 0.6))


def step_risk(score: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Nearly all answers of the better half are right, and a third of the others are wrong."""
    return np.where(score > 0, 0.04, 0.35)


# A large model: many answers, most of them right, for which a fit of one score says at most 0.96.
LARGE = {
    "large model, the fit saturates, target just missed": GroupPopulation(
        1500,
        (1,),
        lambda s, _: np.where(s >= 0.3, 0.055, 0.3),
        0.05,
        score=lambda x: np.minimum(x, 0.3),
    ),
    "large model, two steps of risk": GroupPopulation(1500, (1,), step_risk, 0.05),
    "large model, the most confident mislead": GroupPopulation(
        1000, (1,), lambda s, _: np.where(s > 1.2, 0.3, np.where(s > 0, 0.05, 0.4)), 0.2
    ),
}
POPULATIONS = LARGE | {
    "single answers, rate just missed": GroupPopulation(260, (1,), constant_risk(0.21), 0.2),
    "single answers, risk falls with the score": GroupPopulation(260, (1,), falling_risk, 0.3),
    "single answers, the best scores mislead": GroupPopulation(260, (1,), misleading_risk, 0.3),
    "groups of 4, alike": GroupPopulation(100, (4,), constant_risk(0.31), 0.3, correlation=0.8),
    "groups of 4, hardly alike": GroupPopulation(
        100, (4,), constant_risk(0.21), 0.2, correlation=0.1
    ),
    "groups of 4, risk falls with the score": GroupPopulation(
        100, (4,), falling_risk, 0.3, correlation=0.5
    ),
    "groups of 1 and 7, the large ones worse": GroupPopulation(
        200, (1, 7), risk_by_size(0.05, 0.24), 0.21, correlation=0.5
    ),
    "groups of 1 and 7, the small ones worse": GroupPopulation(
        200, (1, 7), risk_by_size(0.30, 0.05), 0.08, correlation=0.5
    ),
    "groups of 1 and 7, a wrong member is a wrong group": GroupPopulation(
        200, (1, 7), risk_by_size(0.05, 0.24), 0.21, correlation=1.0
    ),
    "groups of 1 and 7, the large ones kept first and wrong": GroupPopulation(
        200, (1, 7), risk_by_size(0.02, 0.22), 0.2, correlation=0.3, lift=1.0
    ),
    "groups of 1, 2, 3 and 20, the large ones worse": GroupPopulation(
        900, (1, 2, 3, 20), risk_by_size(0.05, 0.25, 3), 0.2, correlation=0.5
    ),
    "groups of 1 to 5, wrong as a whole": GroupPopulation(
        300, (1, 2, 3, 4, 5), risk_by_size(0.1, 0.24, 2), 0.2, correlation=1.0
    ),
    "ties: three different scores": GroupPopulation(
        100,
        (1, 4),
        constant_risk(0.31),
        0.3,
        correlation=0.5,
        score=lambda x: np.clip(np.round(x), -1, 1),
    ),
    "one constant score": GroupPopulation(
        100, (1, 4), constant_risk(0.31), 0.3, correlation=0.5, score=np.zeros_like
    ),
}


# Groups so large and rare that a calibration part may hold none; and rates that take the threshold of
# a stricter one.
SPECIAL = {
    "one group in a hundred has 20, stated": GroupPopulation(
        1500, (1,) * 99 + (20,), risk_by_size(0.02, 0.7), 0.13, correlation=1.0, largest_group=20
    ),
    "groups of 1, 2, 3 and 20, kept up to 5": GroupPopulation(
        300, (1, 2, 3, 20), risk_by_size(0.1, 0.28, 3), 0.175, correlation=0.5, largest_group=5
    ),
    **{
        f"{groups} single answers, just missed, or by a stricter rate": GroupPopulation(
            groups, (1,), constant_risk(0.405), 0.4, stricter=(0.05, 0.1, 0.2, 0.3)
        )
        for groups in (24, 60, 260)
    },
    "stricter rates, risk falls with the score": GroupPopulation(
        120, (1,), falling_risk, 0.3, stricter=(0.05, 0.1, 0.2, 0.25)
    ),
}


def true_rate(
    reference: SimulatedAnswers, score: np.ndarray, threshold: float, largest_group: int
) -> float:
    """The true error rate of the kept answers; those of larger groups are never kept."""
    sizes = np.bincount(reference.group)[reference.group]
    is_kept = (score >= threshold) & (sizes <= largest_group)
    return float(reference.risk[is_kept].mean()) if is_kept.any() else 0.0


def threshold_on_the_rest(
    answers: SimulatedAnswers,
    fit_scores: Callable[[np.ndarray], np.ndarray],
    rates: Sequence[float],
    seed: int,
    largest_group: int | None = None,
) -> tuple[float | None, int]:
    """Test thresholds as `calibrate` does: a fifth of the groups fits, the others test.

    `fit_scores` takes the mask [answers] of the fifth and returns all scores. Returns the threshold
    of the last rate, and the largest group whose answers may be kept.
    """
    _, number = np.unique(answers.group, return_inverse=True)
    order = np.random.default_rng([seed, 1]).permutation(number.max() + 1)[number]
    sizes = np.bincount(order)
    limit = largest_group or choose_largest_group(sizes)
    fits = order < round(FIT_SHARE * len(sizes))
    scores = GroupedScores(fit_scores(fits), order, sizes[order])
    labelled, others = scores.select(~fits), scores.select(fits)
    level, fitted = significance_level(CONFIDENCE), (others.score, answers.wrong[fits])
    terms = rates, level, limit, False, fitted
    tests = find_thresholds(labelled, answers.wrong[~fits], others, *terms)
    return tests[-1].threshold, limit


def find_threshold(
    answers: SimulatedAnswers, seed: int, population: GroupPopulation
) -> tuple[Fit, float | None, int]:
    """Fit a calibrator on a fifth of the groups and find the guaranteed threshold.

    The third value is the largest group whose answers may be kept.
    """
    calibrators = []

    def fit_scores(fits: np.ndarray) -> np.ndarray:
        x = answers.score[:, None]
        calibrators.append(fit(x[fits], ~answers.wrong[fits], "platt"))
        return calibrators[0].predict(x)

    rates = (*population.stricter, population.rate)
    found = threshold_on_the_rest(answers, fit_scores, rates, seed, population.largest_group)
    return calibrators[0], *found


def count_broken(population: GroupPopulation, runs: int, seed: int) -> tuple[int, int]:
    """Count the runs with a guarantee, and those with a broken one."""
    rng = np.random.default_rng(seed)
    reference = population.draw(rng, REFERENCE)
    n_guaranteed = n_broken = 0
    for run in range(runs):
        answers = population.draw(rng, population.groups)
        calibrator, threshold, largest_group = find_threshold(answers, run, population)
        if threshold is None:
            continue
        n_guaranteed += 1
        probability = calibrator.predict(reference.score[:, None])
        rate = true_rate(reference, probability, threshold, largest_group)
        n_broken += rate > population.rate
    return n_guaranteed, n_broken


def claims(
    runs: int, populations: Mapping[str, GroupPopulation] = POPULATIONS | SPECIAL
) -> Iterator[Claim]:
    for seed, (name, population) in enumerate(populations.items()):
        n_guaranteed, n_broken = count_broken(population, runs, seed)
        claim = f"error rate ≤ {population.rate:g}: {name} ({n_guaranteed / runs:.0%} guaranteed)"
        yield Claim(claim, runs, n_broken, 1 - CONFIDENCE)
