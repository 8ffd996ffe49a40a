"""How often do the monitors raise an alarm where nothing changed?

Each run draws a reference and a stream from one population and lets all four monitors without
labels watch: an alarm of any within n answers is allowed in n / (2 N) of the runs. With labels, the
chance of an alarm, ever, is bounded; the error rate is at its target, or wanders below it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from simulations.alarm_streams import first_alarms
from simulations.claims import Claim
from tracecal.calibration.calibrator import Reference
from tracecal.monitoring.monitors import ABOVE, Batch, Promise, bet

# At each length, how many of the runs that other claims are tried on are made.
LENGTHS = {10**3: 0.5, 10**4: 0.1, 10**5: 0.02, 10**6: 0.01}
SHORT = 10**4  # beyond it one population suffices: a run takes seconds
# Answers watched, as a share of the answers in which a false alarm is allowed once on average.
WATCHED = 0.5
CHUNK = 2 * 10**6  # answers simulated at once


@dataclass(frozen=True)
class Population:
    """Answers' confidences, made of standard normal numbers; lengths fall as confidence rises.

    `reference` answers are known when watching begins; `unknown` is the share without confidence.
    """

    reference: int
    probability: Callable[[np.ndarray], np.ndarray] = expit
    unknown: float = 0.02

    def draw(self, rng: np.random.Generator, n: int) -> Batch:
        x = rng.normal(size=n)
        probability = self.probability(x)
        unknown = rng.random(n) < self.unknown
        return Batch(
            np.where(unknown, np.nan, probability),
            1.0 + rng.poisson(np.exp(2 - x / 2)),
            np.where(unknown, np.nan, probability >= 0.7),
        )


POPULATIONS = {
    "300 answers known": Population(300),
    "30 answers known": Population(30),
    "no answer known, all have confidence": Population(0, unknown=0.0),
    "a saturated confidence": Population(300, lambda x: expit(np.minimum(x, 0.3))),
    "four different confidences": Population(100, lambda x: np.digitize(x, [-1, 0, 1]) / 4 + 0.1),
}
FIRST = next(iter(POPULATIONS))


def alarmed(population: Population, length: int, runs: Sequence[int], promise: Promise) -> int:
    """In how many of the runs, numbered, some monitor raises an alarm within `length` answers."""
    references, streams = [], []
    for run in runs:
        rng = np.random.default_rng([run, length])
        known = population.draw(rng, population.reference)
        given = known.probability[~np.isnan(known.probability)]
        references.append(Reference(given, known.length))
        streams.append(population.draw(rng, length))
    found = first_alarms(references, streams, promise, seed=runs[0])
    return int(np.any([*found.values()], axis=0).sum())


def false_alarms(population: Population, length: int, runs: int) -> int:
    promise = Promise(answers_per_alarm=round(length / WATCHED))
    size = max(1, CHUNK // length)
    return sum(
        alarmed(population, length, range(first, min(first + size, runs)), promise)
        for first in range(0, runs, size)
    )


def at_target(rng: np.random.Generator, shape: tuple[int, int], rate: float) -> np.ndarray:
    return rng.random(shape) < rate


def wandering(rng: np.random.Generator, shape: tuple[int, int], rate: float) -> np.ndarray:
    """An error rate that stays at a level below the target for 100 labels each."""
    levels = rng.choice([0.2, 0.9, 1.0], size=(shape[0], shape[1] // 100 + 1))
    return rng.random(shape) < rate * np.repeat(levels, 100, axis=1)[:, : shape[1]]


JUDGED = {"at its target": at_target, "wandering below its target": wandering}


def false_errors(kind: str, length: int, runs: int, rate: float, chance: float) -> int:
    """In how many runs the monitor with labels raises an alarm that is a false one."""
    rng = np.random.default_rng([length, runs])
    size, found = max(1, CHUNK // length), 0
    for first in range(0, runs, size):
        count = min(size, runs - first)
        wrong = JUDGED[kind](rng, (count, length), rate)
        _, evidence = bet(np.zeros((count, len(ABOVE))), wrong, rate, 0)
        found += int((evidence >= 1 / chance).any(1).sum())
    return found


def claims(runs: int, lengths: Sequence[int] = tuple(LENGTHS)) -> Iterator[Claim]:
    chance = Promise().chance
    for length in lengths:
        tries = max(10, round(runs * LENGTHS[length]))
        for name, population in POPULATIONS.items():
            if length <= SHORT or name == FIRST:
                claim = f"no alarm within {length:,} answers where nothing changed: {name}"
                raised = false_alarms(population, length, tries)
                yield Claim(claim, tries, raised, WATCHED / 2)
        for kind in JUDGED:
            claim = f"no alarm of {length:,} labels, an error rate of 0.1 {kind}"
            yield Claim(claim, tries, false_errors(kind, length, tries, 0.1, chance), chance)
