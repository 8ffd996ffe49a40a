"""Does a guaranteed error rate hold where the score is fixed beforehand, by the line and values?

Each population is hostile in its own way: its kept answers are wrong a little more often than the
target at some thresholds or at all. A guarantee is broken if any guaranteed threshold is false.
Populations of few atoms are computed exactly, all others are drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from simulations.claims import Claim
from simulations.guarantees import (
    REPEATS,
    GroupPopulation,
    just_missed,
    one_of_each,
    true_rate,
)
from tracecal.guarantees.error_rate import find_thresholds
from tracecal.guarantees.line import error_line
from tracecal.guarantees.recall import recall_threshold

LEVEL = 0.1
LABELS, RATES = (50, 100, 400), (0.1, 0.2)
CELLS = 2000  # a population's risk is constant within each of so many equal shares of the answers
MISS = 1.02  # a rate that is just missed is so many times the target
UNLABELLED = 2000
RECALL = 0.8

SHARE = (
    np.arange(CELLS) + 0.5
) / CELLS  # the share of answers that rank above the middle of a cell


@dataclass(frozen=True)
class RankedPopulation:
    """Single answers, from the highest rank down: arrays [CELLS].

    `risk` is each cell's error rate; cells with equal `atom` have one score. Without atoms scores are
    continuous.
    """

    risk: np.ndarray
    atom: np.ndarray | None = None

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The scores of `n` answers, and which are wrong."""
        place = rng.random(n)
        cell = (place * CELLS).astype(int)
        score = -place if self.atom is None else -self.atom[cell].astype(float)
        return score, rng.random(n) < self.risk[cell]

    def error_rate(self, threshold: float) -> float:
        """The true error rate of the answers with at least this score."""
        if self.atom is not None:
            return float(self.risk[-self.atom >= threshold].mean())
        place = -threshold * CELLS
        whole = int(place)
        part = (place - whole) * self.risk[whole] if whole < CELLS else 0.0
        return float((self.risk[:whole].sum() + part) / place)

    def recall(self, threshold: float) -> float:
        """The share of right answers with at least this score, in cells with ties."""
        right = 1 - self.risk
        score = -(SHARE if self.atom is None else self.atom)
        return float(right[score >= threshold].sum() / right.sum())


def constant(risk: float) -> np.ndarray:
    return np.full(CELLS, risk)


def atoms(n: int) -> np.ndarray:
    return np.arange(CELLS) * n // CELLS


def waves(rate: float) -> np.ndarray:
    """Error rates that swing around a little more than the target."""
    return rate * MISS * (1 + 0.9 * np.sin(20 * np.pi * SHARE))


def spike(rate: float) -> np.ndarray:
    """A good top, then wrong answers that lift the rate of all kept ones above the target."""
    return np.where(
        SHARE < 0.1, rate / 4, np.where(SHARE < 0.2, rate * (2 * MISS - 0.25), rate * MISS)
    )


def hostile(rate: float) -> dict[str, RankedPopulation]:
    """The populations of a target rate."""
    missed = constant(rate * MISS)
    falling = rate * MISS * (1 + np.exp(-8 * SHARE))
    return {
        "one tie for all, just missed": RankedPopulation(missed, atoms(1)),
        "two atoms, just missed": RankedPopulation(missed, atoms(2)),
        "five atoms, just missed": RankedPopulation(missed, atoms(5)),
        "ten atoms, just missed": RankedPopulation(missed, atoms(10)),
        "the target throughout": RankedPopulation(constant(rate * (1 + 1e-9))),
        "waves around the target": RankedPopulation(waves(rate)),
        "a spike after a good top": RankedPopulation(spike(rate)),
        "falling to the target": RankedPopulation(falling),
        "the wrong way round": RankedPopulation(np.clip(2 * rate * (1 - SHARE) + rate / 20, 0, 1)),
        "a right top, just missed at the end": RankedPopulation(
            np.where(SHARE < 0.05, 0.0, rate * MISS / 0.95)
        ),
        "2 % wrong, all at the top": RankedPopulation(np.where(SHARE < 0.02, 1.0, 0.0)),
        "98 % wrong, the right ones below the target": RankedPopulation(
            np.where(0.02 / (1 - rate * MISS) > SHARE, rate * MISS, 1.0)
        ),
        "70 % tied at the target": RankedPopulation(
            np.where(SHARE < 0.7, rate * MISS, 0.6), np.where(SHARE < 0.7, 0, np.arange(CELLS))
        ),
        "always right": RankedPopulation(constant(0.0)),
        "always wrong": RankedPopulation(constant(1.0)),
        "half tied after a good top": RankedPopulation(
            np.where(
                SHARE < 0.2, rate / 2, np.where(SHARE < 0.7, rate * (0.7 * MISS - 0.1) / 0.5, 0.9)
            ),
            np.where((SHARE >= 0.2) & (SHARE < 0.7), 399, np.arange(CELLS)),
        ),
        "ties where the target is reached": RankedPopulation(
            np.minimum(rate * MISS * 1.5 * SHARE + rate / 4, 1), atoms(40)
        ),
    }


def false_thresholds(
    population: RankedPopulation, rng: np.random.Generator, n: int, rate: float, few: bool
) -> tuple[bool, bool]:
    """Whether a draw of `n` labels gives any threshold, and whether it gives a false one."""
    score, wrong = population.draw(rng, n)
    unlabelled, _ = population.draw(rng, UNLABELLED if few else 0)
    (test,) = find_thresholds(score, wrong, unlabelled, [rate], LEVEL)
    broken = any(population.error_rate(threshold) > rate for threshold in test.guaranteed)
    return bool(test.guaranteed), broken


def exactly_broken(population: RankedPopulation, n: int, rate: float) -> float:
    """The probability that `n` labels of a population of atoms give a false threshold by the line.

    The counts of kept and wrong answers are followed atom by atom.
    """
    line = error_line(n, rate, LEVEL)
    names, shares = np.unique(population.atom, return_counts=True)
    state = np.zeros((n + 1, n + 1))  # kept, wrong
    state[0, 0] = 1.0
    broken, above = 0.0, 0
    kept_so_far = wrong_so_far = 0.0
    for name, share in zip(names, shares, strict=True):
        risk = float(population.risk[population.atom == name].mean())
        chance = share / (CELLS - above)
        after = np.zeros_like(state)
        for kept in np.flatnonzero(state.any(axis=1)):
            n_new = np.arange(n - kept + 1)
            for number, p in zip(n_new, binom.pmf(n_new, n - kept, chance), strict=True):
                if p > 0:
                    wrong = np.convolve(state[kept], binom.pmf(np.arange(number + 1), number, risk))
                    after[kept + number] += p * wrong[: n + 1]
        above += share
        kept_so_far, wrong_so_far = kept_so_far + share, wrong_so_far + share * risk
        if wrong_so_far > rate * kept_so_far and line is not None:
            for kept in range(line.first, n + 1):
                end = line.allowed[kept - line.first] + 1
                broken += after[kept, :end].sum()
                after[kept, :end] = 0.0
        state = after
    return float(broken)


def count_broken(
    population: RankedPopulation, n: int, rate: float, runs: int, seed: int, few: bool = False
) -> tuple[int, int]:
    """Count the draws with a guarantee, and those with a false one."""
    rng = np.random.default_rng(seed)
    outcomes = [false_thresholds(population, rng, n, rate, few) for _ in range(runs)]
    said, broken = np.sum(outcomes, axis=0)
    return int(said), int(broken)


def claims(runs: int) -> Iterator[Claim]:
    """Every population at every number of labels, by the line; those of few atoms also by values."""
    cells = [
        (n, rate, name, few)
        for n in LABELS
        for rate in RATES
        for name, population in hostile(rate).items()
        for few in ((False, True) if _has_few_values(population) else (False,))
    ]
    for seed, (n, rate, name, few) in enumerate(cells):
        said, broken = count_broken(hostile(rate)[name], n, rate, runs, seed, few)
        way = "values" if few else "line"
        claim = f"error rate ≤ {rate:g}, {n} labels, {way}: {name} ({100 * said / runs:.0f} % guaranteed)"
        yield Claim(claim, runs, broken, LEVEL, cells=len(cells))


def _has_few_values(population: RankedPopulation) -> bool:
    return population.atom is not None and len(np.unique(population.atom)) < 20


def count_broken_groups(population: GroupPopulation, runs: int, seed: int) -> tuple[int, int]:
    """The same for questions with several answers, of which one tests."""
    rng = np.random.default_rng(seed)
    log = population.draw(rng, 20_000)
    rate, said, broken = just_missed(log, "questions"), 0, 0
    for _ in range(runs):
        labelled = one_of_each(population.draw(rng, population.groups), rng)
        nothing = labelled.score[:0]
        (test,) = find_thresholds(labelled.score, labelled.wrong, nothing, [rate], LEVEL)
        said += bool(test.guaranteed)
        broken += any(true_rate(log, log.score, each) > rate for each in test.guaranteed)
    return said, broken


def group_claims(runs: int) -> Iterator[Claim]:
    for seed, (name, population) in enumerate(REPEATS.items()):
        said, broken = count_broken_groups(population, runs, seed)
        claim = f"by questions, just missed, line: {name} ({100 * said / runs:.0f} % guaranteed)"
        yield Claim(claim, runs, broken, LEVEL, cells=len(REPEATS))


def recall_claims(runs: int) -> Iterator[Claim]:
    """A recall."""
    cells = [
        (n, name)
        for n in LABELS
        for name in (
            "waves around the target",
            "half tied after a good top",
            "five atoms, just missed",
            "falling to the target",
        )
    ]
    for seed, (n, name) in enumerate(cells):
        population, rng, broken = hostile(0.2)[name], np.random.default_rng(seed), 0
        for _ in range(runs):
            score, wrong = population.draw(rng, n)
            threshold = recall_threshold(score, ~wrong, RECALL, LEVEL)
            broken += threshold is not None and population.recall(threshold) < RECALL - 1e-3
        yield Claim(f"recall ≥ {RECALL:g}, {n} labels: {name}", runs, broken, LEVEL, len(cells))
