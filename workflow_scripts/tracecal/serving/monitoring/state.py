"""Monitors of traffic: ranks among what was seen, and evidence valid after every answer."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from tracecal.calibrator.schema import Reference
from tracecal.io.randomness import seeded
from tracecal.serving.monitoring.settings import CHANCE, PER_ALARM

BETS = np.array([-1.8, -0.9, 0.0, 0.9, 1.8])
MOVED = 0.01
# The error rates bet on, as shares of the way from the target to 1.
ABOVE = np.array([1 / 16, 1 / 8, 1 / 4, 1 / 2])
# How strongly a rank may follow from the one before it, and the ranks that say what is usual.
FOLLOWS = np.array([1.0, 2.0, 3.9])
WINDOW = 50
LAGS, SEGMENT = 256, 2048  # the furthest that neighbours are looked for, and within how many values
EXACT_SUMS = 2.0**40  # sums of ranks as integers do not depend on how many are summed at once


def detect(wealth: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The wealth [streams, bets] after ranks [streams, n], and its sum [streams, n] at each one.

    One after the other, so that a batch leaves exactly what its answers would one by one.
    """
    sums = np.empty(ranks.shape)
    with np.errstate(over="ignore"):  # a wealth beyond all numbers is an alarm all the same
        for place in range(ranks.shape[1]):
            shared = (1 + MOVED * wealth.sum(1, keepdims=True)) / len(BETS)
            paid = 1 + BETS * (ranks[:, place, None] - 0.5)
            wealth = paid * (shared + (1 - MOVED) * wealth)
            sums[:, place] = wealth.sum(1)
    return wealth, sums


def bet(
    wealth: np.ndarray, wrong: np.ndarray, error_rate: float, before: int
) -> tuple[np.ndarray, np.ndarray]:
    """The wealth [streams, bets] after labels `wrong` [streams, n], and the e-process [streams, n].

    A label is 1 (wrong) or 0, or the mean of a block of labels: bets pay in proportion. `before`
    labels were bet on already.
    """
    q = error_rate + (1 - error_rate) * ABOVE
    right, gain = (1 - q) / (1 - error_rate), q / error_rate - (1 - q) / (1 - error_rate)
    found = np.empty(wrong.shape)
    with np.errstate(over="ignore"):
        for place in range(wrong.shape[1]):
            label = before + place + 1
            entering = 1 / (label * (label + 1) * len(ABOVE))
            wealth = (right + wrong[:, place, None] * gain) * (wealth + entering)
            found[:, place] = wealth.sum(1) + 1 / (label + 1)
    return wealth, found


def follow(wealth: np.ndarray, last: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """The wealth [streams, n, bets] after each of ranks [streams, n], which follow on the `last`
    [streams, WINDOW + 1].
    """
    known = np.concatenate([last, ranks[:, :-1]], axis=1)
    sums = np.cumsum(np.rint(known * EXACT_SUMS).astype(np.int64), axis=1)
    sums = np.concatenate([np.zeros_like(sums[:, :1]), sums], axis=1)
    usual = (sums[:, WINDOW:-1] - sums[:, : -WINDOW - 1]) / (EXACT_SUMS * WINDOW)
    signal = np.clip(known[:, WINDOW:] - usual, -0.5, 0.5)
    pays = 1 + FOLLOWS * ((ranks - 0.5) * signal)[:, :, None]
    pays[:, 0] *= wealth
    with np.errstate(over="ignore"):
        return np.multiply.accumulate(pays, axis=1)


def block_length(values: np.ndarray) -> int | None:
    """How many of the values [n], in their order, make a block whose mean tells little of the next.

    It is four times the lag up to which values are alike: their normal scores are correlated, on
    average over lags from a power of two to the next, by more than three standard errors, which
    grow with the correlations of smaller lags (Bartlett). Levels of segments are taken out, so that
    one change of level counts little. Null: they are alike over LAGS values and more, as in a slow
    drift or a daily cycle.
    """
    scores = ndtri((rankdata(values) - 0.5) / len(values))
    segments = np.array_split(scores, -(-len(scores) // SEGMENT))
    segments = [own - own.mean() for own in segments]
    power = sum(float(own @ own) for own in segments) or 1.0
    lag, alike, squares, total = 1, 1, 1.0, 1.0
    while lag < min(LAGS, len(scores) // 4):
        found = [sum(own[k:] @ own[:-k] for own in segments) / power for k in range(lag, 2 * lag)]
        error = np.sqrt(min(squares, total**2 / lag) / len(scores))
        if np.mean(found) > 3 * error:
            alike = 2 * lag
            squares += 2 * float(np.square(found).sum())
            total += 2 * float(np.sum(found))
        lag *= 2
    return None if alike >= LAGS else 4 * max(alike, 2)


# Ranks of answers, or of blocks of them, among everything seen so far, as independent uniform
# numbers.


# Logits of probabilities are told apart between -12 and 12, in steps of 0.024.
LARGEST_LOGIT, PROBABILITIES = 12.0, 1000
# Lengths are told apart in STEPS for each doubling, up to a million tokens.
STEPS, LENGTHS = 32, 641
BLOCK = 64


def bins_of_probability(probability: np.ndarray) -> np.ndarray:
    """The bins [n], below PROBABILITIES, of probabilities [n] in [0, 1]."""
    with np.errstate(divide="ignore"):
        logit = np.log(probability) - np.log1p(-probability)
    share = (np.clip(logit, -LARGEST_LOGIT, LARGEST_LOGIT) / LARGEST_LOGIT + 1) / 2
    return np.minimum((share * PROBABILITIES).astype(int), PROBABILITIES - 1)


def bins_of_length(length: np.ndarray) -> np.ndarray:
    """The bins [n], below LENGTHS, of lengths [n], or means of such, of at least 1 token."""
    return np.minimum(STEPS * np.log2(length), LENGTHS - 1).astype(int)


def bins_of_count(count: np.ndarray) -> np.ndarray:
    """The counts [n] themselves."""
    return count.astype(int)


def bins(block: int = 1) -> dict[str, tuple[Callable[[np.ndarray], np.ndarray], int]]:
    """By signal, how values of blocks of so many answers are put in bins, and into how many."""
    return {
        "probability": (bins_of_probability, PROBABILITIES),
        "length": (bins_of_length, LENGTHS),
        "kept": (bins_of_count, block + 1),
        "unknown": (bins_of_count, block + 1),
    }


def uniform(name: str, seed: int, start: int, count: int) -> np.ndarray:
    """Numbers `start` to `start + count` of a monitor's own sequence, uniform in [0, 1)."""
    generator = seeded("watch", name, seed)
    generator.bit_generator.advance(start)
    return generator.random(count)


def smoothed_ranks(counts: np.ndarray, bins: np.ndarray, ties: np.ndarray) -> np.ndarray:
    """The share [n] of the values so far that are below each value, itself and ties by `ties` [n].

    `counts` [bins] are the values seen before; `bins` [n] are ranked in their order, and each
    belongs to what the next is ranked among.
    """
    counts, ranks = counts.copy(), np.empty(len(bins))
    for start in range(0, len(bins), BLOCK):
        own = bins[start : start + BLOCK]
        earlier = np.tri(len(own), k=-1, dtype=bool)
        below = np.cumsum(counts)[own] - counts[own]
        below += (earlier & (own[None] < own[:, None])).sum(1)
        equal = counts[own] + (earlier & (own[None] == own[:, None])).sum(1) + 1
        total = counts.sum() + np.arange(1, len(own) + 1)
        ranks[start : start + BLOCK] = (below + ties[start : start + BLOCK] * equal) / total
        counts += np.bincount(own, minlength=len(counts))
    return ranks


# The monitors of a calibrator's traffic: a state of plain values that answers and labels move.


ERROR = "error rate"
MONITORS = tuple(bins())
ALIKE = 100.0  # the wealth at which it is said that neighbours are alike


@dataclass(frozen=True)
class AlarmSettings:
    """What is watched: settings that do not change while a state is in use.

    `error_rate` is the target among kept answers, null where none was asked for. `block` answers,
    or labels, are watched as one. `one_per` names what answers share of which one is watched, null:
    nothing.
    """

    answers_per_alarm: int = PER_ALARM
    error_rate: float | None = None
    chance: float = CHANCE
    block: int = 1
    one_per: str | None = None

    @property
    def limit(self) -> float:
        """The wealth at which a monitor without labels raises its alarm."""
        return 2.0 * len(MONITORS) * self.answers_per_alarm / self.block


@dataclass(frozen=True)
class Monitor:
    """A monitor's state after `seen` values: `wealth` [bets] and `total`, the evidence now.

    `counts` are the values so far by bin, empty for labels. `alarm` is the place of the answer, or
    label, at which it was raised, counted from 1; evidence stays as it was then.
    """

    counts: np.ndarray
    wealth: np.ndarray
    seen: int = 0
    total: float = 0.0
    alarm: int | None = None


@dataclass(frozen=True)
class Neighbours:
    """Evidence that neighbours are alike: the `wealth` [bets] after the ranks of which `last` are
    the newest. `alarm` is the place of the answer at which it sufficed.
    """

    wealth: np.ndarray = field(default_factory=lambda: np.ones(len(FOLLOWS)))
    last: np.ndarray = field(default_factory=lambda: np.full(WINDOW + 1, 0.5))
    alarm: int | None = None


@dataclass(frozen=True)
class Batch:
    """Answers in their order, as arrays [n]: probability and length, NaN where unknown; `kept`, NaN
    where it was not decided."""

    probability: np.ndarray
    length: np.ndarray
    kept: np.ndarray

    def __len__(self) -> int:
        return len(self.probability)

    def __getitem__(self, part: slice | np.ndarray) -> "Batch":
        return Batch(*(values[part] for values in vars(self).values()))

    def __add__(self, other: "Batch") -> "Batch":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Batch(*map(np.concatenate, pairs))

    def signals(self, block: int = 1) -> dict[str, np.ndarray]:
        """By monitor, the value of each block of answers; NaN where it has none.

        A value is the answer's own; of several the probability of the mean logit, the geometric
        mean of lengths, and how many are kept and unknown.
        """
        unknown = np.isnan(self.probability).astype(float)
        if block == 1:
            probability, length, kept = self.probability, self.length, self.kept
            return dict(zip(MONITORS, (probability, length, kept, unknown), strict=True))
        with np.errstate(divide="ignore"):
            logit = np.log(self.probability) - np.log1p(-self.probability)
        logit = _means(np.clip(logit, -LARGEST_LOGIT, LARGEST_LOGIT), block)
        decided = ~np.isnan(self.kept.reshape(-1, block)).all(1)
        kept = np.nansum(self.kept.reshape(-1, block), axis=1)
        values = (
            1 / (1 + np.exp(-logit)),
            np.exp(_means(np.log(self.length), block)),
            np.where(decided, kept, np.nan),
            unknown.reshape(-1, block).sum(1),
        )
        return dict(zip(MONITORS, values, strict=True))


def _means(values: np.ndarray, block: int) -> np.ndarray:
    """The means of the known values of each block; NaN where none is known."""
    rows = values.reshape(-1, block)
    known = (~np.isnan(rows)).sum(1)
    return np.where(known, np.nansum(rows, axis=1) / np.maximum(known, 1), np.nan)


NOTHING = Batch(*np.empty((3, 0)))


@dataclass(frozen=True)
class State:
    """Everything that monitors remember.

    `seed` is of the ties, this state's own. `answers` counts those watched, of `seen` in all.
    `waiting` are answers, and `labels` whether labelled ones were wrong, that do not fill a block.
    """

    settings: AlarmSettings
    seed: int
    monitors: Mapping[str, Monitor]
    errors: Monitor
    neighbours: Neighbours = field(default_factory=Neighbours)
    answers: int = 0
    seen: int = 0
    waiting: Batch = NOTHING
    labels: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def alarms(self) -> dict[str, Monitor]:
        """The monitors that raised an alarm."""
        every = {**self.monitors, ERROR: self.errors}
        return {name: one for name, one in every.items() if one.alarm is not None}


def start(
    settings: AlarmSettings, reference: Reference | None = None, seed: int | None = None
) -> State:
    """A state that has seen nothing but the reference, with a `seed` of its own (null: drawn).

    One seed for all would break the ties of all alike: where a signal is constant, evidence is a
    path that the seed fixes, and one that raises an alarm would raise it for everybody. The share
    kept has no reference: its threshold was chosen on those very answers.
    """
    if reference is None or settings.block > 1:
        reference = Reference()
    known = {"probability": reference.probability, "length": reference.length}
    monitors = {}
    for name, (binned, size) in bins(settings.block).items():
        values = np.asarray(known.get(name, ()), dtype=float)
        counts = np.bincount(binned(values), minlength=size)
        monitors[name] = Monitor(counts, np.zeros(len(BETS)))
    errors = Monitor(np.zeros(0, dtype=int), np.zeros(len(ABOVE)), total=1.0)
    return State(settings, secrets.randbits(63) if seed is None else seed, monitors, errors)


def watch(state: State, batch: Batch) -> State:
    """The state after a batch of answers: the same as after each of them by itself."""
    block, given = state.settings.block, state.waiting + batch
    whole = len(given) // block * block
    signals = given[:whole].signals(block)
    first = state.answers - len(state.waiting)
    moved, ranks = {}, {}
    for name, monitor in state.monitors.items():
        moved[name], ranks[name] = _moved(name, monitor, signals[name], first, state)
    return replace(
        state,
        monitors=moved,
        neighbours=_followed(state.neighbours, ranks["probability"], first, block),
        answers=state.answers + len(batch),
        seen=state.seen + len(batch),
        waiting=given[whole:],
    )


def _moved(
    name: str, monitor: Monitor, values: np.ndarray, first: int, state: State
) -> tuple[Monitor, np.ndarray]:
    """A monitor after the values [n] of blocks behind `first` answers, and their ranks [n], NaN
    where there are none. What it saw goes on after its alarm, and its evidence does not.
    """
    found, block = np.full(len(values), np.nan), state.settings.block
    places = np.flatnonzero(~np.isnan(values))
    if not len(places):
        return monitor, found
    own = bins(block)[name][0](values[places])
    ties = uniform(name, state.seed, monitor.seen, len(own))
    found[places] = ranks = smoothed_ranks(monitor.counts, own, ties)
    counts = monitor.counts + np.bincount(own, minlength=len(monitor.counts))
    moved = replace(monitor, counts=counts, seen=monitor.seen + len(own))
    if monitor.alarm is not None:
        return moved, found
    wealth, totals = detect(monitor.wealth[None], ranks[None])
    reached, last, alarm = totals[0] >= state.settings.limit, len(own), None
    if reached.any():
        last = int(np.argmax(reached)) + 1
        alarm = first + (int(places[last - 1]) + 1) * block
        wealth, _ = detect(monitor.wealth[None], ranks[None, :last])
    return replace(moved, wealth=wealth[0], total=float(totals[0, last - 1]), alarm=alarm), found


def _followed(neighbours: Neighbours, ranks: np.ndarray, first: int, block: int) -> Neighbours:
    """The evidence after ranks [n], NaN where there are none, of blocks behind `first` answers;
    frozen where it suffices.
    """
    places = np.flatnonzero(~np.isnan(ranks))
    if neighbours.alarm is not None or not len(places):
        return neighbours
    known = ranks[places]
    wealth = follow(neighbours.wealth[None], neighbours.last[None], known[None])[0]
    enough, last, alarm = wealth.mean(1) >= ALIKE, len(known), None
    if enough.any():
        last = int(np.argmax(enough)) + 1
        alarm = first + (int(places[last - 1]) + 1) * block
    newest = np.concatenate([neighbours.last, known[:last]])[-WINDOW - 1 :]
    return Neighbours(wealth[last - 1], newest, alarm)


def judge(state: State, wrong: np.ndarray) -> State:
    """The state after labels of kept answers, `wrong` [n], in the order in which they came.

    Without a target error rate labels change nothing.
    """
    monitor, rate, block = state.errors, state.settings.error_rate, state.settings.block
    if rate is None or monitor.alarm is not None or not len(wrong):
        return state
    given = np.concatenate([state.labels, wrong])
    whole = len(given) // block * block
    state, shares = replace(state, labels=given[whole:]), given[:whole].reshape(-1, block).mean(1)
    if not len(shares):
        return state
    wealth, found = bet(monitor.wealth[None], shares[None], rate, monitor.seen)
    reached, last, alarm = found[0] >= 1 / state.settings.chance, len(shares), None
    if reached.any():
        last = int(np.argmax(reached)) + 1
        alarm = (monitor.seen + last) * block
        wealth, _ = bet(monitor.wealth[None], shares[None, :last], rate, monitor.seen)
    total = float(found[0, last - 1])
    errors = Monitor(monitor.counts, wealth[0], monitor.seen + last, total, alarm)
    return replace(state, errors=errors)


def as_json(state: State) -> dict[str, Any]:
    """Plain values from which `from_json` restores the state exactly."""
    waiting = np.stack([*vars(state.waiting).values()])
    every = {**state.monitors, ERROR: state.errors}
    return {
        "promise": vars(state.settings),  # its name in states of earlier versions, too
        "seed": state.seed,
        "answers": state.answers,
        "seen": state.seen,
        "waiting": [[None if np.isnan(one) else one for one in row] for row in waiting.tolist()],
        "labels": state.labels.tolist(),
        "neighbours": _plain(state.neighbours),
        "monitors": {name: _plain(one) for name, one in every.items()},
    }


def _plain(state: Monitor | Neighbours) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(state).items()
    }


def from_json(stored: Mapping[str, Any]) -> State:
    """The state that `as_json` stored."""
    monitors = {
        name: Monitor(**_arrays(one) | {"counts": np.array(one["counts"], dtype=int)})
        for name, one in stored["monitors"].items()
    }
    return State(
        settings=AlarmSettings(**stored["promise"]),
        seed=stored["seed"],
        errors=monitors.pop(ERROR),
        monitors=monitors,
        neighbours=Neighbours(**_arrays(stored["neighbours"])),
        answers=stored["answers"],
        seen=stored["seen"],
        waiting=Batch(*np.array(stored["waiting"], dtype=float)),
        labels=np.array(stored["labels"], dtype=float),
    )


def _arrays(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values with their lists as arrays of numbers."""
    return {
        name: np.array(value, dtype=float) if isinstance(value, list) else value
        for name, value in plain.items()
    }
