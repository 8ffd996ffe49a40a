"""How often do the monitors raise an alarm if nothing changed?

Each run draws a reference and a stream from one population, which all four monitors without labels
watch: any alarm within n answers is allowed in n / (2 N) of the runs. With labels the chance of an
alarm, ever, is bounded; the error rate is at its target, or wanders below it.

The warning that neighbours are alike may be false in one of a hundred runs, ever; `DEPENDENT` is
traffic in which they are.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter
from scipy.special import expit, ndtri

from simulations.alarm_streams import first_alarms, first_warnings
from simulations.claims import Claim
from tracecal.calibrator.schema import Reference
from tracecal.monitoring.batch import Batch
from tracecal.monitoring.betting import EXCESS_RATES, bet_on_errors
from tracecal.monitoring.state import AlarmSettings, initial_state, watch

# The share of runs at each length of stream.
LENGTHS = {10**3: 0.5, 10**4: 0.1, 10**5: 0.02, 10**6: 0.01}
SHORT = 10**4  # longer streams, whose runs take seconds, are of one population alone
# Watched answers, as a share of those in which a false alarm is allowed once on average.
WATCHED = 0.5
CHUNK = 2 * 10**6  # answers simulated at once


@dataclass(frozen=True)
class TrafficPopulation:
    """Traffic whose lengths fall as confidence rises.

    `reference` is how many answers are known at the start; `probability` makes confidences of standard
    normal numbers, and a share `undefined` of answers has none.
    """

    reference: int
    probability: Callable[[np.ndarray], np.ndarray] = expit
    undefined: float = 0.02

    def draw(self, rng: np.random.Generator, n: int) -> Batch:
        x = rng.normal(size=n)
        probability = self.probability(x)
        undefined = rng.random(n) < self.undefined
        return Batch(
            np.where(undefined, np.nan, probability),
            1.0 + rng.poisson(np.exp(2 - x / 2)),
            np.where(undefined, np.nan, probability >= 0.7),
        )


POPULATIONS = {
    "300 answers known": TrafficPopulation(300),
    "30 answers known": TrafficPopulation(30),
    "no answer known, all have confidence": TrafficPopulation(0, undefined=0.0),
    "a saturated confidence": TrafficPopulation(300, lambda x: expit(np.minimum(x, 0.3))),
    "four different confidences": TrafficPopulation(
        100, lambda x: np.digitize(x, [-1, 0, 1]) / 4 + 0.1
    ),
}
FIRST = next(iter(POPULATIONS))


def count_alarms(
    population: TrafficPopulation, length: int, runs: Sequence[int], settings: AlarmSettings
) -> int:
    """Count the runs (by number) in which a monitor raises an alarm within `length` answers."""
    references, streams = [], []
    for run in runs:
        rng = np.random.default_rng([run, length])
        batch = population.draw(rng, population.reference)
        defined = ~np.isnan(batch.probability)
        references.append(Reference(batch.probability[defined], batch.length[defined]))
        streams.append(population.draw(rng, length))
    alarms = first_alarms(references, streams, settings, seed=runs[0])
    return int(np.any([*alarms.values()], axis=0).sum())


def count_false_alarms(population: TrafficPopulation, length: int, runs: int) -> int:
    settings = AlarmSettings(answers_per_alarm=round(length / WATCHED))
    size = max(1, CHUNK // length)
    return sum(
        count_alarms(population, length, range(first, min(first + size, runs)), settings)
        for first in range(0, runs, size)
    )


def at_target(rng: np.random.Generator, shape: tuple[int, int], rate: float) -> np.ndarray:
    return rng.random(shape) < rate


def wandering(rng: np.random.Generator, shape: tuple[int, int], rate: float) -> np.ndarray:
    """An error rate that stays at a level below the target for 100 labels each."""
    levels = rng.choice([0.2, 0.9, 1.0], size=(shape[0], shape[1] // 100 + 1))
    return rng.random(shape) < rate * np.repeat(levels, 100, axis=1)[:, : shape[1]]


def late(rng: np.random.Generator, shape: tuple[int, int], rate: float) -> np.ndarray:
    """`wandering`, with labels that come up to some hundred answers late, right or wrong."""
    return _delay(wandering(rng, shape, rate), rng.exponential(200, shape))


def sooner(rng: np.random.Generator, shape: tuple[int, int], rate: float) -> np.ndarray:
    """At the target, but labels of wrong answers come after 50 answers and of right ones after 200."""
    wrong = at_target(rng, shape, rate)
    return _delay(wrong, np.where(wrong, 50, 200))


def mistaken(
    true: float, share: float
) -> Callable[[np.random.Generator, tuple[int, int], float], np.ndarray]:
    """A true error rate whose labels are flipped in a share of cases."""
    return lambda rng, shape, rate: (rng.random(shape) < true) ^ (rng.random(shape) < share)


def _delay(wrong: np.ndarray, delay: np.ndarray) -> np.ndarray:
    order = np.argsort(np.arange(wrong.shape[1]) + delay, axis=1, kind="stable")
    return np.take_along_axis(wrong, order, axis=1)


LABEL_STREAMS = {
    "at its target": at_target,
    "wandering below its target": wandering,
    "wandering, told late": late,
    "of .08 and one label in fifty wrong": mistaken(0.08, 0.02),
}
# Streams that docs/guides/proxy.md warns of, without a claim.
MISLEADING_STREAMS = {
    "at its target, wrong ones told sooner": sooner,
    "of .08 and one label in twenty wrong": mistaken(0.08, 0.05),
}


def count_false_error_alarms(kind: str, length: int, runs: int, rate: float, chance: float) -> int:
    """Count the runs in which the monitor with labels raises a false alarm."""
    rng = np.random.default_rng([length, runs])
    size, n_alarms = max(1, CHUNK // length), 0
    for first in range(0, runs, size):
        count = min(size, runs - first)
        wrong = (LABEL_STREAMS | MISLEADING_STREAMS)[kind](rng, (count, length), rate)
        _, evidence = bet_on_errors(np.zeros((count, len(EXCESS_RATES))), wrong, rate, 0)
        n_alarms += int((evidence >= 1 / chance).any(1).sum())
    return n_alarms


def count_constant_alarms(length: int, runs: int) -> int:
    """Count the states, each with the seed that it draws, in which constant answers raise an alarm.

    The answers have one token each, are sure and are kept.
    """
    constant = Batch(np.full(length, 0.99), np.ones(length), np.ones(length))
    settings = AlarmSettings(answers_per_alarm=round(length / WATCHED))
    return sum(bool(watch(initial_state(settings), constant).alarms) for _ in range(runs))


def in_runs(
    lengths: Callable[[np.random.Generator, int], np.ndarray], rho: float
) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Draw normal scores [n] in runs of these lengths; within a run they correlate by `rho`."""

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        ends = np.cumsum(lengths(rng, n))
        run = np.searchsorted(ends, np.arange(n) + rng.integers(20), side="right")
        levels = rng.normal(size=run[-1] + 1)
        return np.sqrt(rho) * levels[run] + np.sqrt(1 - rho) * rng.normal(size=n)

    return draw


def fixed_lengths(length: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: np.full(n + 20, length)


def random_lengths(length: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: rng.geometric(1 / length, n + 20)


def autoregressive(rng: np.random.Generator, n: int) -> np.ndarray:
    noise = rng.normal(size=n + 100) * np.sqrt(1 - 0.7**2)
    return lfilter([1.0], [1.0, -0.7], noise)[100:]


def conversations(rng: np.random.Generator, n: int) -> np.ndarray:
    """Four conversations of five answers at once; a random one continues next."""
    score, level, remaining = np.empty(n), rng.normal(size=4), np.full(4, 5)
    for index in range(n):
        current = rng.integers(4)
        score[index] = 0.8 * level[current] + 0.6 * rng.normal()
        remaining[current] -= 1
        if not remaining[current]:
            level[current], remaining[current] = rng.normal(), 5
    return score


# Normal scores whose neighbours are alike, and with them the probabilities, lengths and labels.
DEPENDENT = {
    "pairs, correlated by .6": in_runs(fixed_lengths(2), 0.6),
    "identical pairs": in_runs(fixed_lengths(2), 1.0),
    "runs of 5, correlated by .3": in_runs(fixed_lengths(5), 0.3),
    "runs of 5, identical": in_runs(fixed_lengths(5), 1.0),
    "runs of 5 on average, correlated by .5": in_runs(random_lengths(5), 0.5),
    "runs of 20, correlated by .64": in_runs(fixed_lengths(20), 0.64),
    "each correlated by .7 with the last": autoregressive,
    "4 conversations of 5 at once": conversations,
}
N_FIRST = 1000
LABELS, RATE = 3000, 0.1


def make_batch(score: np.ndarray, rng: np.random.Generator) -> Batch:
    probability = expit(1 + 1.5 * score)
    length = 1.0 + rng.poisson(np.exp(2 - score / 2))
    return Batch(probability, length, np.where(probability >= 0.7, 1.0, 0.0))


def lengths_in_runs(rng: np.random.Generator, n: int) -> Batch:
    """Draw independent probabilities, and lengths that are the same five times in a row."""
    batch = make_batch(rng.normal(size=n), rng)
    runs = make_batch(rng.normal(size=-(-n // 5)), rng)
    return Batch(batch.probability, np.repeat(runs.length, 5)[:n], batch.keep)


def missing_in_bursts(rng: np.random.Generator, n: int) -> Batch:
    """Draw independent answers, without confidence in a fifth of all runs of twenty."""
    batch = make_batch(rng.normal(size=n), rng)
    missing = np.repeat(rng.random(-(-n // 20)) < 0.2, 20)[:n]
    probability, keep = (np.where(missing, np.nan, v) for v in (batch.probability, batch.keep))
    return Batch(probability, batch.length, keep)


# Traffic in which neighbours are alike in one of the watched signals alone.
ALIKE_IN_ONE = {
    "lengths in runs of 5": lengths_in_runs,
    "confidence missing in bursts of 20": missing_in_bursts,
}


def draw_dependent(name: str, rng: np.random.Generator, n: int) -> Batch:
    """Draw a stream of `n` answers of DEPENDENT or of ALIKE_IN_ONE."""
    if name in ALIKE_IN_ONE:
        return ALIKE_IN_ONE[name](rng, n)
    return make_batch(DEPENDENT[name](rng, n), rng)


def count_dependent_alarms(name: str, runs: int, n: int) -> int:
    """Count the runs of `n` answers with an alarm."""
    rngs = [np.random.default_rng([run, 2]) for run in range(runs)]
    streams = [draw_dependent(name, rng, n) for rng in rngs]
    settings = AlarmSettings(answers_per_alarm=round(n / 0.3))
    alarms = first_alarms([Reference()] * runs, streams, settings)
    return int(np.any([*alarms.values()], axis=0).sum())


def count_dependent_error_alarms(name: str, runs: int, chance: float) -> int:
    """`count_dependent_alarms` for labels at exactly the target error rate."""
    wrong = np.stack(
        [
            DEPENDENT[name](np.random.default_rng([run, 3]), LABELS) < ndtri(RATE)
            for run in range(runs)
        ]
    )
    _, evidence = bet_on_errors(np.zeros((runs, len(EXCESS_RATES))), wrong, RATE, 0)
    return int((evidence >= 1 / chance).any(1).sum())


DAY, HOURS, SWING = 2000, 24, 0.2
EXTREME = 6  # the hour whose mean score is highest
REFERENCE = 300


def daily(
    rng: np.random.Generator, days: int, swing: float = SWING, hour: int | None = None
) -> Batch:
    """Draw days of DAY answers, or their answers in one hour.

    The mean score swings with the time of day by `swing` standard deviations.
    """
    time = np.arange(DAY) / DAY
    if hour is not None:
        time = time[(time * HOURS).astype(int) == hour]
    time = np.tile(time, days)
    return make_batch(rng.normal(size=len(time)) + swing * np.sin(2 * np.pi * time), rng)


def count_daily_alarms(days: int, runs: int, swing: float = SWING) -> int:
    """Count the streams of days in which a monitor raises an alarm."""
    streams = [daily(np.random.default_rng([run, 6]), days, swing) for run in range(runs)]
    alarms = first_alarms([Reference()] * runs, streams, AlarmSettings())
    return int(np.any([*alarms.values()], axis=0).sum())


def count_hourly_alarms(days: int, runs: int, swing: float, known_hour: int | None) -> int:
    """Count the states, each of the most extreme hour of `days`, in which a monitor raises an alarm.

    The calibrator knows REFERENCE answers of `known_hour`, or of the whole day.
    """
    references, streams = [], []
    for run in range(runs):
        rng = np.random.default_rng([run, 8])
        known = daily(rng, 5, swing, known_hour)
        sample = rng.choice(len(known.probability), REFERENCE, replace=False)
        references.append(Reference(known.probability[sample], known.length[sample]))
        streams.append(daily(rng, days, swing, EXTREME))
    alarms = first_alarms(references, streams, AlarmSettings())
    return int(np.any([*alarms.values()], axis=0).sum())


def count_warnings(population: TrafficPopulation, runs: int) -> int:
    """Count the runs of independent answers with a warning that neighbours are alike."""
    streams = [population.draw(np.random.default_rng([run, 4]), N_FIRST) for run in range(runs)]
    return int((first_warnings([Reference()] * runs, streams) > 0).sum())


def count_noticed(name: str, n: int, runs: int) -> int:
    """Count the runs whose first `n` answers raise the warning that neighbours are alike."""
    streams = [draw_dependent(name, np.random.default_rng([run, 5]), n) for run in range(runs)]
    return int((first_warnings([Reference()] * runs, streams) > 0).sum())


def warning_claims(runs: int) -> Iterator[Claim]:
    """Claims about the warning that neighbours are alike, and about answers that all are."""
    few = max(20, runs // 20)
    claim = "no alarm within 3,000 answers that are all of one token"
    yield Claim(claim, few, count_constant_alarms(3000, few), WATCHED / 2)
    for name, population in POPULATIONS.items():
        claim = f"independent answers are not called alike: {name}"
        yield Claim(claim, runs, count_warnings(population, runs), 0.01)
    claim = "no alarm in ten days of one hour of a daily cycle, with labels of that hour"
    n_alarms = count_hourly_alarms(10, few, SWING, EXTREME)
    yield Claim(claim, few, n_alarms, 10 * DAY / HOURS / (2 * AlarmSettings().answers_per_alarm))


def claims(runs: int, lengths: Sequence[int] = tuple(LENGTHS)) -> Iterator[Claim]:
    chance = AlarmSettings().chance
    for length in lengths:
        tries = max(10, round(runs * LENGTHS[length]))
        for name, population in POPULATIONS.items():
            if length <= SHORT or name == FIRST:
                claim = f"no alarm within {length:,} answers where nothing changed: {name}"
                n_alarms = count_false_alarms(population, length, tries)
                yield Claim(claim, tries, n_alarms, WATCHED / 2)
        for kind in LABEL_STREAMS:
            claim = f"no alarm of {length:,} labels, an error rate of 0.1 {kind}"
            yield Claim(
                claim, tries, count_false_error_alarms(kind, length, tries, 0.1, chance), chance
            )


def main(runs: int = 200) -> None:
    """Print how often neighbours are noticed, and how often they or a daily cycle raise an alarm.

    The tables of docs/background/alarms.md: PYTHONPATH=workflow_scripts:tests python -m simulations.alarms
    """
    print(f"{'neighbours':<42} warned within 300  1,000  alarm within 3,000")
    for name in (*DEPENDENT, *ALIKE_IN_ONE):
        shares = [count_noticed(name, n, runs) / runs for n in (300, N_FIRST)]
        n_alarms = count_dependent_alarms(name, runs, 3000)
        print(f"{name:<42} {shares[0]:17.2f} {shares[1]:6.2f} {n_alarms / runs:6.2f}", flush=True)
    print("swing  one state, 3 days  one hour, 30 days, labels of all hours  labels of that hour")
    for swing in (0.1, SWING, 0.5):
        hours = [count_hourly_alarms(30, runs, swing, known) / runs for known in (None, EXTREME)]
        one = count_daily_alarms(3, runs, swing) / runs
        print(f"{swing:5.1f} {one:18.3f} {hours[0]:36.3f} {hours[1]:19.3f}", flush=True)


if __name__ == "__main__":
    main()
