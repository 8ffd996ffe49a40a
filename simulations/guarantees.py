"""Does a guaranteed error rate hold, through the fit on a fifth of the labels and the test on the others?

A population generates groups: their sizes, and the scores and risks of their answers. Each run draws
a task, of which one answer of each group counts. A guarantee is broken if the true error rate of the
kept answers, each question counted once, exceeds the target. Most populations are unfavourable: their
true rate is a little above the target, so that any guarantee is false.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import polars as pl
from scipy.special import ndtr

from simulations.claims import Claim
from tracecal.answers.groups import FIT_SHARE, place_answers
from tracecal.fits.fit_settings import Unit
from tracecal.fits.fits import Fit
from tracecal.fits.regression import fit
from tracecal.guarantees.error_rate import find_thresholds
from tracecal.guarantees.line import significance_level

CONFIDENCE = 0.9
REFERENCE = 20_000  # groups that stand for the truth
RENAMINGS = 10
RENAMED = ("single answers, rate just missed", "single answers, the best scores mislead")


@dataclass(frozen=True)
class SimulatedAnswers:
    """Answers in the order of their groups, with their true risks: arrays [answers]."""

    group: np.ndarray
    score: np.ndarray
    risk: np.ndarray
    wrong: np.ndarray

    def select(self, places: np.ndarray) -> "SimulatedAnswers":
        """The answers at these places, each a group of its own number."""
        columns = (self.group, self.score, self.risk, self.wrong)
        return SimulatedAnswers(*(values[places] for values in columns))


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


# Rates that take the threshold of a stricter one.
SPECIAL = {
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


# Questions with several answers, whose number may go with the error either way.
REPEATS = {name: each for name, each in POPULATIONS.items() if max(each.sizes) > 1} | {
    "one question in a hundred has 20, wrong as a whole in 70 %": GroupPopulation(
        300, (1,) * 99 + (20,), risk_by_size(0.19, 0.7), 0.2, correlation=1.0
    ),
    "pairs that are duplicates": GroupPopulation(200, (1, 2), constant_risk(0.2), 0.2, 1.0),
}
MISS = 1.02  # a rate that is just missed is so many times the target


def weights(answers: SimulatedAnswers, unit: Unit) -> np.ndarray:
    """How much each answer counts, [answers]: each question once, or each answer."""
    if unit == "answers":
        return np.ones(len(answers.group))
    return 1 / np.bincount(answers.group)[answers.group]


def true_rate(
    answers: SimulatedAnswers, score: np.ndarray, threshold: float, unit: Unit = "questions"
) -> float:
    """The true error rate of the kept answers."""
    is_kept = score >= threshold
    weight = weights(answers, unit)[is_kept]
    return float(np.average(answers.risk[is_kept], weights=weight)) if is_kept.any() else 0.0


def one_of_each(answers: SimulatedAnswers, rng: np.random.Generator) -> SimulatedAnswers:
    """A random answer of each question."""
    order = rng.permutation(len(answers.group))
    _, first = np.unique(answers.group[order], return_index=True)
    return answers.select(order[first])


def just_missed(answers: SimulatedAnswers, unit: Unit) -> float:
    """A target rate that all answers together miss a little."""
    return true_rate(answers, answers.score, -np.inf, unit) / MISS


def threshold_on_the_rest(
    answers: SimulatedAnswers, rates: Sequence[float], seed: int
) -> tuple[Fit, float | None]:
    """Fit on a fifth of single answers and test thresholds on the others, as `calibrate` does.

    Returns the fit and the threshold of the last rate.
    """
    n = len(answers.score)
    fits = np.random.default_rng([seed, 1]).permutation(n) < round(FIT_SHARE * n)
    calibrator = fit(answers.score[fits, None], ~answers.wrong[fits], "platt")
    return calibrator, lowest_threshold(
        calibrator.predict(answers.score[:, None]), answers, fits, rates
    )


def lowest_threshold(
    score: np.ndarray, answers: SimulatedAnswers, fits: np.ndarray, rates: Sequence[float]
) -> float | None:
    """The threshold of the last rate by the answers that did not fit the score."""
    level, fitted = significance_level(CONFIDENCE), (score[fits], answers.wrong[fits])
    labelled = score[~fits], answers.wrong[~fits]
    return find_thresholds(*labelled, score[fits], rates, level, fitted)[-1].threshold


def count_broken(population: GroupPopulation, runs: int, seed: int) -> tuple[int, int]:
    """Count the runs with a guarantee, and those with a broken one."""
    rng = np.random.default_rng(seed)
    reference = population.draw(rng, REFERENCE)
    rates = (*population.stricter, population.rate)
    n_guaranteed = n_broken = 0
    for run in range(runs):
        answers = one_of_each(population.draw(rng, population.groups), rng)
        calibrator, threshold = threshold_on_the_rest(answers, rates, run)
        if threshold is None:
            continue
        n_guaranteed += 1
        probability = calibrator.predict(reference.score[:, None])
        n_broken += true_rate(reference, probability, threshold) > population.rate
    return n_guaranteed, n_broken


def count_broken_by_unit(
    population: GroupPopulation, unit: Unit, runs: int, seed: int
) -> tuple[int, int]:
    """The same for labels that are drawn from a log by questions, or answer by answer.

    The log's own answers are the truth, and the target is the rate that they just miss. An answer
    may be drawn several times.
    """
    rng = np.random.default_rng(seed)
    log = population.draw(rng, REFERENCE)
    log = replace(log, risk=log.wrong.astype(float))
    chance = weights(log, unit) / weights(log, unit).sum()
    rate, n_guaranteed, n_broken = just_missed(log, unit), 0, 0
    for run in range(runs):
        drawn = rng.choice(len(chance), population.groups, p=chance)
        calibrator, threshold = threshold_on_the_rest(log.select(drawn), (rate,), run)
        if threshold is None:
            continue
        n_guaranteed += 1
        probability = calibrator.predict(log.score[:, None])
        n_broken += true_rate(log, probability, threshold, unit) > rate
    return n_guaranteed, n_broken


def claims(
    runs: int, populations: Mapping[str, GroupPopulation] = POPULATIONS | SPECIAL
) -> Iterator[Claim]:
    for seed, (name, population) in enumerate(populations.items()):
        n_guaranteed, n_broken = count_broken(population, runs, seed)
        claim = f"error rate ≤ {population.rate:g}: {name} ({100 * n_guaranteed / runs:.0f} % guaranteed)"
        yield Claim(claim, runs, n_broken, 1 - CONFIDENCE)


def unit_claims(runs: int) -> Iterator[Claim]:
    """Questions that repeat, each counted once where questions are drawn, and by answers."""
    for seed, (name, population) in enumerate(REPEATS.items()):
        for unit in get_args(Unit):
            n_guaranteed, n_broken = count_broken_by_unit(population, unit, runs, seed)
            claim = f"by {unit}, just missed: {name} ({100 * n_guaranteed / runs:.0f} % guaranteed)"
            yield Claim(claim, runs, n_broken, 1 - CONFIDENCE, cells=2 * len(REPEATS))


def nicest_of_renamed(
    answers: SimulatedAnswers, rate: float, seed: int
) -> tuple[Fit, float | None]:
    """The fit and the lowest threshold of RENAMINGS runs on the same answers with other ids."""
    found = []
    for number in range(RENAMINGS):
        ids = np.random.default_rng([seed, number]).permutation(len(answers.score)).astype(str)
        rows = pl.DataFrame(
            {
                "example_id": ids,
                "asked": [f"question {place}" for place in answers.group],
                "prompt": pl.Series([None] * len(ids), dtype=pl.String),
                "answer": "x",
                "surprisal": answers.score[:, None].tolist(),
            }
        )
        places = place_answers(rows, rows.select("example_id", group_id="example_id"))
        placed = rows.join(places, on="example_id", maintain_order="left")
        fits = (placed["side"] == "fit").to_numpy()
        calibrator = fit(answers.score[fits, None], ~answers.wrong[fits], "platt")
        score = calibrator.predict(answers.score[:, None])
        found.append((calibrator, lowest_threshold(score, answers, fits, (rate,))))
    guaranteed = [each for each in found if each[1] is not None]
    kept = [(each[0].predict(answers.score[:, None]) >= each[1]).sum() for each in guaranteed]
    return guaranteed[int(np.argmax(kept))] if guaranteed else (found[0][0], None)


def renamed_claims(runs: int) -> Iterator[Claim]:
    """Whoever renames answers, and takes the names that keep most, gets no luckier guarantee."""
    for seed, name in enumerate(RENAMED):
        population = POPULATIONS[name]
        rng, n_broken = np.random.default_rng(seed), 0
        reference = population.draw(rng, REFERENCE)
        for run in range(runs):
            answers = population.draw(rng, 150)
            calibrator, threshold = nicest_of_renamed(answers, population.rate, run)
            if threshold is not None:
                probability = calibrator.predict(reference.score[:, None])
                n_broken += true_rate(reference, probability, threshold) > population.rate
        claim = f"nicest of {RENAMINGS} renamings of ids: {name}"
        yield Claim(claim, runs, n_broken, 1 - CONFIDENCE, cells=len(RENAMED))
