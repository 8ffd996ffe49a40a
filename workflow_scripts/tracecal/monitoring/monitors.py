"""Monitors of traffic: ranks among what was seen, and evidence valid after every answer."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tracecal.calibration.calibrator import Reference
from tracecal.io.randomness import seeded

BETS = np.array([-1.8, -0.9, 0.0, 0.9, 1.8])
MOVED = 0.01
# The error rates bet on, as shares of the way from the target to 1.
ABOVE = np.array([1 / 16, 1 / 8, 1 / 4, 1 / 2])


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

    `before` labels were bet on already.
    """
    q = error_rate + (1 - error_rate) * ABOVE
    pays = np.stack([(1 - q) / (1 - error_rate), q / error_rate])
    found = np.empty(wrong.shape)
    with np.errstate(over="ignore"):
        for place in range(wrong.shape[1]):
            label = before + place + 1
            entering = 1 / (label * (label + 1) * len(ABOVE))
            wealth = pays[wrong[:, place].astype(int)] * (wealth + entering)
            found[:, place] = wealth.sum(1) + 1 / (label + 1)
    return wealth, found


# Ranks of answers among everything seen so far, as independent uniform numbers.


# Logits of probabilities are told apart between -12 and 12, in steps of 0.024.
LARGEST_LOGIT, PROBABILITIES = 12.0, 1000
# Lengths are told apart up to EXACT tokens, and from there on in STEPS for each doubling.
EXACT, STEPS, DOUBLINGS = 64, 32, 14
BLOCK = 64


def bins_of_probability(probability: np.ndarray) -> np.ndarray:
    """The bins [n], below PROBABILITIES, of probabilities [n] in [0, 1]."""
    with np.errstate(divide="ignore"):
        logit = np.log(probability) - np.log1p(-probability)
    share = (np.clip(logit, -LARGEST_LOGIT, LARGEST_LOGIT) / LARGEST_LOGIT + 1) / 2
    return np.minimum((share * PROBABILITIES).astype(int), PROBABILITIES - 1)


def bins_of_length(length: np.ndarray) -> np.ndarray:
    """The bins [n], at most EXACT + STEPS * DOUBLINGS, of lengths [n], at least 1 token."""
    beyond = np.log2(np.maximum(length, EXACT) / EXACT)
    further = np.minimum((STEPS * beyond).astype(int), STEPS * DOUBLINGS)
    return np.minimum(length, EXACT).astype(int) + further


def bins_of_flag(flag: np.ndarray) -> np.ndarray:
    """0 or 1."""
    return flag.astype(int)


# How a signal's values are put in bins, and into how many.
BINS = {
    "probability": (bins_of_probability, PROBABILITIES),
    "length": (bins_of_length, EXACT + STEPS * DOUBLINGS + 1),
    "kept": (bins_of_flag, 2),
    "unknown": (bins_of_flag, 2),
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


@dataclass(frozen=True)
class Promise:
    """What is watched: settings that do not change while a state is in use.

    `error_rate` is the target among kept answers, null where none was asked for.
    """

    answers_per_alarm: int = 10_000
    error_rate: float | None = None
    chance: float = 0.05
    seed: int = 2026

    @property
    def limit(self) -> float:
        """The wealth at which a monitor without labels raises its alarm."""
        return 2.0 * len(BINS) * self.answers_per_alarm


@dataclass(frozen=True)
class Monitor:
    """A monitor's state after `seen` bets: `wealth` [bets] and `total`, the evidence now.

    `counts` are the values so far by bin, empty for labels. `alarm` is the place of the answer, or
    label, at which it was raised, counted from 1.
    """

    counts: np.ndarray
    wealth: np.ndarray
    seen: int = 0
    total: float = 0.0
    alarm: int | None = None


@dataclass(frozen=True)
class State:
    """Everything that monitors remember. `answers` counts those watched."""

    promise: Promise
    monitors: Mapping[str, Monitor]
    errors: Monitor
    answers: int = 0

    @property
    def alarms(self) -> dict[str, Monitor]:
        """The monitors that raised an alarm."""
        every = {**self.monitors, ERROR: self.errors}
        return {name: one for name, one in every.items() if one.alarm is not None}


@dataclass(frozen=True)
class Batch:
    """Answers in their order, as arrays [n]: probability and length, NaN where unknown; `kept`, NaN
    where it was not decided."""

    probability: np.ndarray
    length: np.ndarray
    kept: np.ndarray

    def signals(self) -> dict[str, np.ndarray]:
        """By monitor, the value of each answer; NaN where it has none."""
        return {
            "probability": self.probability,
            "length": self.length,
            "kept": self.kept,
            "unknown": np.isnan(self.probability).astype(float),
        }


def start(promise: Promise, reference: Reference | None = None) -> State:
    """A state that has seen nothing but the reference.

    The share kept has no reference: its threshold was chosen on those very answers.
    """
    reference = reference or Reference()
    known = {"probability": reference.probability, "length": reference.length}
    monitors = {}
    for name, (bins, size) in BINS.items():
        values = np.asarray(known.get(name, ()), dtype=float)
        counts = np.bincount(bins(values), minlength=size)
        monitors[name] = Monitor(counts, np.zeros(len(BETS)))
    errors = Monitor(np.zeros(0, dtype=int), np.zeros(len(ABOVE)), total=1.0)
    return State(promise, monitors, errors)


def watch(state: State, batch: Batch) -> State:
    """The state after a batch of answers: the same as after each of them by itself."""
    signals = batch.signals()
    moved = {
        name: _moved(name, monitor, signals[name], state)
        for name, monitor in state.monitors.items()
    }
    return replace(state, monitors=moved, answers=state.answers + len(batch.probability))


def _moved(name: str, monitor: Monitor, values: np.ndarray, state: State) -> Monitor:
    """A monitor after the values [n] of a batch; frozen at its alarm."""
    places = np.flatnonzero(~np.isnan(values))
    if monitor.alarm is not None or not len(places):
        return monitor
    bins = BINS[name][0](values[places])
    ties = uniform(name, state.promise.seed, monitor.seen, len(bins))
    ranks = smoothed_ranks(monitor.counts, bins, ties)[None]
    wealth, totals = detect(monitor.wealth[None], ranks)
    reached, last, alarm = totals[0] >= state.promise.limit, len(bins), None
    if reached.any():
        last = int(np.argmax(reached)) + 1
        alarm = state.answers + int(places[last - 1]) + 1
        wealth, _ = detect(monitor.wealth[None], ranks[:, :last])
    counts = monitor.counts + np.bincount(bins[:last], minlength=len(monitor.counts))
    return Monitor(counts, wealth[0], monitor.seen + last, float(totals[0, last - 1]), alarm)


def judge(state: State, wrong: np.ndarray) -> State:
    """The state after labels of kept answers, `wrong` [n], in the order in which they came.

    Without a target error rate labels change nothing.
    """
    monitor, rate = state.errors, state.promise.error_rate
    if rate is None or monitor.alarm is not None or not len(wrong):
        return state
    wealth, found = bet(monitor.wealth[None], wrong[None], rate, monitor.seen)
    reached, last, alarm = found[0] >= 1 / state.promise.chance, len(wrong), None
    if reached.any():
        last = int(np.argmax(reached)) + 1
        alarm = monitor.seen + last
        wealth, _ = bet(monitor.wealth[None], wrong[None, :last], rate, monitor.seen)
    total = float(found[0, last - 1])
    errors = Monitor(monitor.counts, wealth[0], monitor.seen + last, total, alarm)
    return replace(state, errors=errors)


def as_json(state: State) -> dict[str, Any]:
    """Plain values from which `from_json` restores the state exactly."""
    every = {**state.monitors, ERROR: state.errors}
    return {
        "promise": vars(state.promise),
        "answers": state.answers,
        "monitors": {
            name: vars(one) | {"counts": one.counts.tolist(), "wealth": one.wealth.tolist()}
            for name, one in every.items()
        },
    }


def from_json(stored: Mapping[str, Any]) -> State:
    """The state that `as_json` stored."""
    monitors = {
        name: Monitor(
            **one
            | {"counts": np.array(one["counts"], dtype=int), "wealth": np.array(one["wealth"])}
        )
        for name, one in stored["monitors"].items()
    }
    errors = monitors.pop(ERROR)
    return State(Promise(**stored["promise"]), monitors, errors, stored["answers"])
