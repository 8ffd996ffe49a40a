"""The monitors of a calibrator's traffic: a state of plain values that answers and labels move.

Four monitors without labels watch the probability, the length, the share kept and the answers
without confidence, each with a limit so that together they raise a false alarm at most once in
`answers_per_alarm` answers on average: the chance of one within n answers is at most the sum of
n / limit, and with a sum of 1 / (2 N) the expected time is N or more. One monitor with labels tests
the error rate among kept answers; its chance of ever raising a false alarm is at most `chance`.

An alarm stays: what a monitor saw is then frozen, as the sample of everything seen so far would
take up the new kind of answer. Watching starts anew with a new calibrator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tracecal.watch.evidence import ABOVE, BETS, bet, detect
from tracecal.watch.ranks import BINS, smoothed_ranks, uniform

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


@dataclass(frozen=True)
class Reference:
    """Values of answers like those of the calibration, which the fit has not seen."""

    probability: Sequence[float] = field(default_factory=tuple)
    length: Sequence[float] = field(default_factory=tuple)


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
