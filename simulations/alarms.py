"""How often do the monitors raise an alarm where nothing changed?

Each run draws a reference and a stream from one population and lets all four monitors without
labels watch: an alarm of any within n answers is allowed in n / (2 N) of the runs. With labels, the
chance of an alarm, ever, is bounded; the error rate is at its target, or wanders below it.

That neighbours are alike may be said by chance in one of a hundred runs, ever. Where they are
(`ALIKE`), blocks of the length that FIRST_SEEN answers of the same traffic advise keep the stated
rates, without labels and with them, for all that their means are not quite independent.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter
from scipy.special import expit, ndtri

from simulations.alarm_streams import first_alarms, first_warnings
from simulations.claims import Claim
from tracecal.calibrator.schema import Reference
from tracecal.serving.monitoring.batch import Batch
from tracecal.serving.monitoring.betting import EXCESS_RATES, bet_on_errors
from tracecal.serving.monitoring.blocks import block_length
from tracecal.serving.monitoring.state import AlarmSettings, initial_state, watch

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


def alarmed(
    population: Population, length: int, runs: Sequence[int], settings: AlarmSettings
) -> int:
    """In how many of the runs, numbered, some monitor raises an alarm within `length` answers."""
    references, streams = [], []
    for run in runs:
        rng = np.random.default_rng([run, length])
        known = population.draw(rng, population.reference)
        given = known.probability[~np.isnan(known.probability)]
        references.append(Reference(given, known.length))
        streams.append(population.draw(rng, length))
    found = first_alarms(references, streams, settings, seed=runs[0])
    return int(np.any([*found.values()], axis=0).sum())


def false_alarms(population: Population, length: int, runs: int) -> int:
    settings = AlarmSettings(answers_per_alarm=round(length / WATCHED))
    size = max(1, CHUNK // length)
    return sum(
        alarmed(population, length, range(first, min(first + size, runs)), settings)
        for first in range(0, runs, size)
    )


def at_target(rng: np.random.Generator, shape: tuple[int, int], rate: float) -> np.ndarray:
    return rng.random(shape) < rate


def wandering(rng: np.random.Generator, shape: tuple[int, int], rate: float) -> np.ndarray:
    """An error rate that stays at a level below the target for 100 labels each."""
    levels = rng.choice([0.2, 0.9, 1.0], size=(shape[0], shape[1] // 100 + 1))
    return rng.random(shape) < rate * np.repeat(levels, 100, axis=1)[:, : shape[1]]


def late(rng: np.random.Generator, shape: tuple[int, int], rate: float) -> np.ndarray:
    """As `wandering`, told up to some hundred labels later, whatever they say."""
    return _told(wandering(rng, shape, rate), rng.exponential(200, shape))


def sooner(rng: np.random.Generator, shape: tuple[int, int], rate: float) -> np.ndarray:
    """At the target, wrong ones told after 50 labels and right ones after 200: not to be done."""
    wrong = at_target(rng, shape, rate)
    return _told(wrong, np.where(wrong, 50, 200))


def mistaken(
    true: float, share: float
) -> Callable[[np.random.Generator, tuple[int, int], float], np.ndarray]:
    """A true error rate, of whose labels such a share is turned round."""
    return lambda rng, shape, rate: (rng.random(shape) < true) ^ (rng.random(shape) < share)


def _told(wrong: np.ndarray, delay: np.ndarray) -> np.ndarray:
    order = np.argsort(np.arange(wrong.shape[1]) + delay, axis=1, kind="stable")
    return np.take_along_axis(wrong, order, axis=1)


JUDGED = {
    "at its target": at_target,
    "wandering below its target": wandering,
    "wandering, told late": late,
    "of .08 and one label in fifty wrong": mistaken(0.08, 0.02),
}
# What docs/guides/watch.md warns of; nothing is claimed.
MISLED = {
    "at its target, wrong ones told sooner": sooner,
    "of .08 and one label in twenty wrong": mistaken(0.08, 0.05),
}


def false_errors(kind: str, length: int, runs: int, rate: float, chance: float) -> int:
    """In how many runs the monitor with labels raises an alarm that is a false one."""
    rng = np.random.default_rng([length, runs])
    size, found = max(1, CHUNK // length), 0
    for first in range(0, runs, size):
        count = min(size, runs - first)
        wrong = (JUDGED | MISLED)[kind](rng, (count, length), rate)
        _, evidence = bet_on_errors(np.zeros((count, len(EXCESS_RATES))), wrong, rate, 0)
        found += int((evidence >= 1 / chance).any(1).sum())
    return found


def alarms_of_constants(length: int, runs: int) -> int:
    """In how many states, each with the seed that it draws, answers that are all alike (of one
    token, sure, kept) raise an alarm of any kind.
    """
    constant = Batch(np.full(length, 0.99), np.ones(length), np.ones(length))
    settings = AlarmSettings(answers_per_alarm=round(length / WATCHED))
    return sum(bool(watch(initial_state(settings), constant).alarms) for _ in range(runs))


def in_runs(
    lengths: Callable[[np.random.Generator, int], np.ndarray], rho: float
) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Draws normal scores [n] in runs of such lengths; within one they correlate by `rho`."""

    def drawn(rng: np.random.Generator, n: int) -> np.ndarray:
        ends = np.cumsum(lengths(rng, n))
        run = np.searchsorted(ends, np.arange(n) + rng.integers(20), side="right")
        levels = rng.normal(size=run[-1] + 1)
        return np.sqrt(rho) * levels[run] + np.sqrt(1 - rho) * rng.normal(size=n)

    return drawn


def of(length: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: np.full(n + 20, length)


def of_mean(length: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: rng.geometric(1 / length, n + 20)


def autoregressive(rng: np.random.Generator, n: int) -> np.ndarray:
    noise = rng.normal(size=n + 100) * np.sqrt(1 - 0.7**2)
    return lfilter([1.0], [1.0, -0.7], noise)[100:]


def conversations(rng: np.random.Generator, n: int) -> np.ndarray:
    """Four conversations of five answers at once, any of which goes on next."""
    score, now, left = np.empty(n), rng.normal(size=4), np.full(4, 5)
    for place in range(n):
        one = rng.integers(4)
        score[place] = 0.8 * now[one] + 0.6 * rng.normal()
        left[one] -= 1
        if not left[one]:
            now[one], left[one] = rng.normal(), 5
    return score


ALIKE = {
    "pairs, correlated by .6": in_runs(of(2), 0.6),
    "identical pairs": in_runs(of(2), 1.0),
    "runs of 5, correlated by .3": in_runs(of(5), 0.3),
    "runs of 5, identical": in_runs(of(5), 1.0),
    "runs of 5 on average, correlated by .5": in_runs(of_mean(5), 0.5),
    "runs of 20, correlated by .64": in_runs(of(20), 0.64),
    "each correlated by .7 with the last": autoregressive,
    "4 conversations of 5 at once": conversations,
}
FIRST_SEEN, THEN_WATCHED = 1000, 6000
LABELS, RATE = 3000, 0.1


def as_answers(score: np.ndarray, rng: np.random.Generator) -> Batch:
    probability = expit(1 + 1.5 * score)
    length = 1.0 + rng.poisson(np.exp(2 - score / 2))
    return Batch(probability, length, np.where(probability >= 0.7, 1.0, 0.0))


def advised(name: str, run: int) -> int | None:
    """The length of blocks that the first answers of a run advise."""
    score = ALIKE[name](np.random.default_rng([run, 1]), FIRST_SEEN)
    return block_length(expit(1 + 1.5 * score))


def alarms_of_alike(name: str, runs: int, block: int | None = None) -> int:
    """In how many runs an alarm is raised, with blocks as advised or of this length. A run without
    a length that helps is not watched.
    """
    lengths, raised = [block or advised(name, run) for run in range(runs)], 0
    for length in {*lengths} - {None}:
        streams = []
        for run in np.flatnonzero(np.array(lengths) == length):
            rng = np.random.default_rng([run, 2])
            streams.append(as_answers(ALIKE[name](rng, THEN_WATCHED), rng))
        settings = AlarmSettings(answers_per_alarm=round(THEN_WATCHED / 0.3), block=length)
        found = first_alarms([Reference()] * len(streams), streams, settings)
        raised += int(np.any([*found.values()], axis=0).sum())
    return raised


def errors_of_alike(name: str, runs: int, chance: float, block: int | None = None) -> int:
    """As `alarms_of_alike`, of labels at exactly the target error rate."""
    raised = 0
    for run in range(runs):
        length = block or advised(name, run)
        if length is not None:
            score = ALIKE[name](np.random.default_rng([run, 3]), LABELS)
            wrong = (score < ndtri(RATE))[: LABELS // length * length]
            shares = wrong.reshape(1, -1, length).mean(2)
            _, evidence = bet_on_errors(np.zeros((1, len(EXCESS_RATES))), shares, RATE, 0)
            raised += bool((evidence >= 1 / chance).any())
    return raised


DAY, DAYS, SWING = 2000, 20, 0.2


def daily(rng: np.random.Generator, spread: float) -> Batch:
    """DAYS of DAY answers, more or less by a share `spread`, whose mean score goes up and down with
    the hour by SWING standard deviations.
    """
    sizes = np.maximum(DAY * (1 + spread * rng.normal(size=DAYS)), 1).astype(int)
    hour = np.concatenate([np.arange(size) / size for size in sizes])
    return as_answers(rng.normal(size=len(hour)) + SWING * np.sin(2 * np.pi * hour), rng)


def alarms_of_days(block: int, spread: float, runs: int, most: int) -> int:
    """In how many streams of days some monitor raises an alarm, one in `most` answers stated."""
    rng = np.random.default_rng([block, round(100 * spread)])
    raised = 0
    for run in range(runs):  # one by one, as days differ in length
        settings = AlarmSettings(answers_per_alarm=most, block=block)
        found = first_alarms([Reference()], [daily(rng, spread)], settings, run)
        raised += any(places[0] > 0 for places in found.values())
    return raised


def of_days(runs: int) -> Iterator[Claim]:
    """A daily cycle is averaged out by blocks of a quarter of a day and more."""
    for block in (DAY // 4, DAY // 2, DAY):
        for spread in (0.0, 0.2):
            most = max(100 * block, round(DAY * DAYS / 0.3))
            raised = alarms_of_days(block, spread, runs, most)
            claim = (
                f"no alarm in {DAYS} days that swing, blocks of {block}, days differ by {spread:g}"
            )
            yield Claim(claim, runs, raised, DAY * DAYS / (2 * most))


def warnings(population: Population, runs: int) -> int:
    """In how many runs of independent answers it is said that neighbours are alike."""
    streams = [population.draw(np.random.default_rng([run, 4]), FIRST_SEEN) for run in range(runs)]
    return int((first_warnings([Reference()] * runs, streams, AlarmSettings()) > 0).sum())


def of_neighbours(runs: int, names: Sequence[str] = tuple(ALIKE)) -> Iterator[Claim]:
    """What is claimed of traffic whose neighbours are alike, and of what says so."""
    chance, few = AlarmSettings().chance, max(20, runs // 20)
    claim = "no alarm within 3,000 answers that are all of one token"
    yield Claim(claim, few, alarms_of_constants(3000, few), WATCHED / 2)
    for name, population in POPULATIONS.items():
        claim = f"independent answers are not called alike: {name}"
        yield Claim(claim, runs, warnings(population, runs), 0.01)
    for name in names:
        tries = max(20, runs // 10)
        claim = f"no alarm within {THEN_WATCHED:,} answers, blocks as advised: {name}"
        yield Claim(claim, tries, alarms_of_alike(name, tries), 0.15)
        claim = f"no alarm of {LABELS:,} labels, blocks as advised: {name}"
        yield Claim(claim, tries, errors_of_alike(name, tries, chance), chance)


def claims(runs: int, lengths: Sequence[int] = tuple(LENGTHS)) -> Iterator[Claim]:
    chance = AlarmSettings().chance
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
