"""The monitors' state: plain values that answers and labels move.

1. `initial_state` makes a state that has seen nothing but the calibration's answers.
2. `watch` adds answers and `judge` adds labels: the same in a batch as one by one.
3. `as_json` and `from_json` store it.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field, PlainValidator, TypeAdapter

from tracecal.calibrator.schema import Reference
from tracecal.fits.fit_settings import Unit
from tracecal.monitoring import betting
from tracecal.monitoring.batch import MONITORS, Batch
from tracecal.monitoring.monitor_settings import ANSWERS_PER_ALARM, ERROR_ALARM_CHANCE
from tracecal.monitoring.ranks import BINS, smoothed_ranks, tie_breakers

ERROR_MONITOR = "error rate"
# Evidence at which neighbours are said to be alike in one of the signals; each has a test.
DEPENDENCE_LIMIT = 100.0 * len(MONITORS)


def _array(value: Any, largest: float = np.inf) -> np.ndarray:
    """The array [n] of a stored list; raises `ValueError` unless it is of numbers from 0 on."""
    array = np.array(value)
    if array.ndim != 1 or array.dtype.kind not in "if":
        raise ValueError("must be a list of numbers")
    if not ((array >= 0) & (array <= largest)).all():
        raise ValueError(f"must hold numbers from 0 to {largest:g}")
    return array


Numbers = Annotated[np.ndarray, PlainValidator(_array)]
Ranks = Annotated[np.ndarray, PlainValidator(lambda value: _array(value, 1.0))]
Count = Annotated[int, Field(ge=0, lt=2**53, strict=True)]


@dataclass(frozen=True)
class AlarmSettings:
    """What is watched, fixed while a state is in use: `MonitorSettings` and the target error rate.

    `error_rate` is None where labels are not watched. `unit` is what the guarantee counts once.
    """

    answers_per_alarm: int = ANSWERS_PER_ALARM
    error_rate: float | None = None
    chance: float = ERROR_ALARM_CHANCE
    one_per: str | None = None
    unit: Unit = "questions"

    @property
    def by_question(self) -> bool:
        """Whether the first answer to each question is watched."""
        return self.one_per is None and self.unit == "questions"

    @property
    def limit(self) -> float:
        """The evidence at which a monitor without labels raises its alarm."""
        return 2.0 * len(MONITORS) * self.answers_per_alarm


@dataclass(frozen=True)
class Monitor:
    """One monitor after `n_values` answers or labels.

    `counts` [bins] are the values so far, empty for labels, and `wealth` [bets] what each bet won.
    `evidence` stays after an alarm, which was raised at answer or label number `alarm`.
    """

    __pydantic_config__ = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    counts: Numbers
    wealth: Numbers
    n_values: Count = 0
    evidence: Annotated[float, Field(ge=0)] = 0.0
    alarm: Count | None = None


@dataclass(frozen=True)
class DependenceMonitor:
    """The monitor that tests whether neighbouring answers are alike, by the ranks of a signal.

    `recent_ranks` [WINDOW + 1] are the newest; the evidence sufficed at answer number `alarm`.
    """

    __pydantic_config__ = Monitor.__pydantic_config__

    wealth: Numbers = field(default_factory=lambda: np.ones(len(betting.DEPENDENCE_STAKES)))
    recent_ranks: Ranks = field(default_factory=lambda: np.full(betting.WINDOW + 1, 0.5))
    alarm: Count | None = None


@dataclass(frozen=True)
class State:
    """Everything that the monitors remember.

    `seed` breaks this state's ties. `monitors` are those without labels, by signal, and so are the
    tests of `dependence`. Of `n_answers` answers `n_watched` are watched.
    """

    __pydantic_config__ = Monitor.__pydantic_config__

    settings: AlarmSettings
    seed: Annotated[int, Field(ge=0)]
    monitors: Mapping[str, Monitor]
    errors: Monitor
    dependence: Mapping[str, DependenceMonitor] = field(
        default_factory=lambda: {name: DependenceMonitor() for name in MONITORS}
    )
    n_watched: Count = 0
    n_answers: Count = 0

    @property
    def all_monitors(self) -> dict[str, Monitor]:
        """The monitors of the signals and of the error rate, by name."""
        return {**self.monitors, ERROR_MONITOR: self.errors}

    @property
    def alarms(self) -> dict[str, Monitor]:
        """The monitors that raised an alarm, by name."""
        monitors = self.all_monitors.items()
        return {name: monitor for name, monitor in monitors if monitor.alarm is not None}

    @property
    def dependence_alarm(self) -> tuple[str, int] | None:
        """The signal in which neighbours were first found to be alike, and at which answer."""
        alarms = {name: each.alarm for name, each in self.dependence.items() if each.alarm}
        return min(alarms.items(), key=lambda item: item[1]) if alarms else None

    def limit_of(self, monitor: str) -> float:
        """The evidence at which a monitor raises its alarm."""
        return 1 / self.settings.chance if monitor == ERROR_MONITOR else self.settings.limit


def initial_state(
    settings: AlarmSettings, reference: Reference | None = None, seed: int | None = None
) -> State:
    """Make a state that has seen nothing but the calibration's answers.

    `reference` are the calibration's answers; the share kept has none, as its threshold was chosen
    on those answers. `seed` is random by default: with a shared one all users would get the same
    false alarm where a signal is constant.
    """
    reference = reference or Reference()
    values = {"probability": reference.probability, "length": reference.length}
    monitors = {}
    for signal, (to_bins, n_bins) in BINS.items():
        bins = to_bins(np.asarray(values.get(signal, ()), dtype=float))
        counts = np.bincount(bins, minlength=n_bins)
        monitors[signal] = Monitor(counts, np.zeros(len(betting.STAKES)))
    errors = Monitor(np.zeros(0, dtype=int), np.zeros(len(betting.EXCESS_RATES)), evidence=1.0)
    return State(settings, secrets.randbits(63) if seed is None else seed, monitors, errors)


def watch(state: State, batch: Batch) -> State:
    """Return the state after a batch of answers."""
    n_before, monitors, ranks = state.n_watched, {}, {}
    for name, values in batch.signals.items():
        monitors[name], ranks[name] = _watch_signal(name, values, state)
    return replace(
        state,
        monitors=monitors,
        dependence={
            name: _watch_dependence(state.dependence[name], ranks[name], n_before)
            for name in MONITORS
        },
        n_watched=n_before + len(batch),
        n_answers=state.n_answers + len(batch),
    )


def _watch_signal(name: str, values: np.ndarray, state: State) -> tuple[Monitor, np.ndarray]:
    """Return a monitor after further values [n], and their ranks [n].

    Values are NaN where an answer has none, and so are their ranks. After an alarm the monitor
    counts on, and its evidence stays.
    """
    monitor, ranks = state.monitors[name], np.full(len(values), np.nan)
    rows = np.flatnonzero(~np.isnan(values))
    if not len(rows):
        return monitor, ranks
    bins = BINS[name][0](values[rows])
    ties = tie_breakers(name, state.seed, monitor.n_values, len(bins))
    ranks[rows] = smoothed_ranks(monitor.counts, bins, ties)
    counts = monitor.counts + np.bincount(bins, minlength=len(monitor.counts))
    counted = replace(monitor, counts=counts, n_values=monitor.n_values + len(bins))
    if monitor.alarm is not None:
        return counted, ranks
    wealth, evidence = betting.bet_on_change(monitor.wealth[None], ranks[None, rows])
    end, is_alarm = _first_at(evidence[0], state.settings.limit)
    if is_alarm:
        wealth, _ = betting.bet_on_change(monitor.wealth[None], ranks[None, rows[:end]])
    alarm = state.n_watched + int(rows[end - 1]) + 1 if is_alarm else None
    bet = replace(counted, wealth=wealth[0], evidence=float(evidence[0, end - 1]), alarm=alarm)
    return bet, ranks


def _watch_dependence(
    monitor: DependenceMonitor, ranks: np.ndarray, n_before: int
) -> DependenceMonitor:
    """Return the monitor after ranks [n] of answers, NaN where one has none.

    `n_before` answers came before. After an alarm nothing changes.
    """
    rows = np.flatnonzero(~np.isnan(ranks))
    if monitor.alarm is not None or not len(rows):
        return monitor
    defined = ranks[rows]
    wealth = betting.bet_on_dependence(
        monitor.wealth[None], monitor.recent_ranks[None], defined[None]
    )[0]
    end, is_alarm = _first_at(wealth.mean(1), DEPENDENCE_LIMIT)
    recent = np.concatenate([monitor.recent_ranks, defined[:end]])[-betting.WINDOW - 1 :]
    alarm = n_before + int(rows[end - 1]) + 1 if is_alarm else None
    return DependenceMonitor(wealth[end - 1], recent, alarm)


def judge(state: State, is_wrong: np.ndarray) -> State:
    """Return the state after labels of kept answers, `is_wrong` [n], in the order they came.

    Without a target error rate labels change nothing.
    """
    monitor, error_rate = state.errors, state.settings.error_rate
    if error_rate is None or monitor.alarm is not None or not len(is_wrong):
        return state
    errors, n_before = is_wrong[None].astype(float), monitor.n_values
    wealth, evidence = betting.bet_on_errors(monitor.wealth[None], errors, error_rate, n_before)
    end, is_alarm = _first_at(evidence[0], state.limit_of(ERROR_MONITOR))
    if is_alarm:
        wealth, _ = betting.bet_on_errors(
            monitor.wealth[None], errors[:, :end], error_rate, n_before
        )
    alarm = n_before + end if is_alarm else None
    total = float(evidence[0, end - 1])
    return replace(state, errors=Monitor(monitor.counts, wealth[0], n_before + end, total, alarm))


def _first_at(evidence: np.ndarray, limit: float) -> tuple[int, bool]:
    """Return how many values count, up to the first at the limit, and whether one is there."""
    is_reached = evidence >= limit
    if is_reached.any():
        return int(np.argmax(is_reached)) + 1, True
    return len(evidence), False


def as_json(value: Any) -> Any:
    """Return the plain values of a state, from which `from_json` restores it exactly."""
    value = vars(value) if is_dataclass(value) else value
    if isinstance(value, Mapping):
        return {name: as_json(item) for name, item in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def from_json(stored: Any) -> State:
    """Restore a state that `as_json` stored; raises `ValueError` where it has another form."""
    state = _STATE.validate_python(stored)
    if _form(state) != _form(initial_state(state.settings, seed=0)):
        raise ValueError("its monitors have other names or lengths than a state's")
    return state


_STATE = TypeAdapter(State)


def _form(value: Any) -> Any:
    """The names of a state's values, and the shapes and kinds of its arrays."""
    value = vars(value) if is_dataclass(value) else value
    if isinstance(value, Mapping):
        return {name: _form(item) for name, item in value.items()}
    return (value.shape, value.dtype.kind * bool(value.size)) if hasattr(value, "shape") else None
