"""Our monitors of traffic and of errors beside those of MAPIE, on the same streams.

    make bench AREAS=monitors    # some minutes; installs MAPIE in an environment of its own

Of streams that turn after BEFORE answers, false alarms and the answers from the turn to the alarm.
`OnlineMartingaleTest` gets the label of every answer, our monitors of traffic get none; both know the
answers of a reference. `RiskMonitoring` and our monitor of errors get the same labels and the target.
docs/background/compared.md holds the numbers.
"""

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

import numpy as np
from scipy.special import expit
from scipy.stats import beta
from sklearn.base import BaseEstimator, ClassifierMixin

from benchmarks.alarms import AFTER, BEFORE, KNOWN, drawn
from benchmarks.timing import Row, paired
from simulations.alarm_streams import first_alarms
from simulations.alarms import at_target, wandering
from tracecal.calibrator.schema import Reference
from tracecal.monitoring.batch import Batch
from tracecal.monitoring.betting import EXCESS_RATES, bet_on_errors
from tracecal.monitoring.state import AlarmSettings

TARGET = 0.1
# As plug-in martingales take seconds a stream, and RiskMonitoring a tenth.
STREAMS, JUDGED_STREAMS, SLOW_STREAMS = 200, 100, 20
CHANCE, BATCH = 0.05, 50


def interval(count: float, n: int) -> str:
    """A share with its exact 95 % interval (Clopper and Pearson 1934)."""
    low, high = beta.ppf([0.025, 0.975], [count, count + 1], [n - count + 1, n - count])
    return f"{count / n:.2f} [{np.nan_to_num(low):.2f}, {np.nan_to_num(high, nan=1.0):.2f}]"


class Known(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose probability is its one feature."""

    classes_, n_features_in_ = np.array([0, 1]), 1

    def fit(self, x: np.ndarray, y: np.ndarray) -> "Known":
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return np.column_stack([1 - x[:, 0], x[:, 0]])

    def predict(self, x: np.ndarray) -> np.ndarray:
        return (x[:, 0] >= 0.5).astype(int)


# By kind, by how much the scores fall and by how much odds of being right fall beside them.
TURNS = {
    "nothing changes": (0.0, 0.0),
    "scores fall by .5 s.d.": (0.5, 0.0),
    "scores fall by 1 s.d.": (1.0, 0.0),
    "scores stay, odds fall by e": (0.0, 1.0),
}
Stream = tuple[Reference, Batch, np.ndarray, np.ndarray]


def stream(turn: tuple[float, float], seed: int) -> Stream:
    """Reference and answers, and whether those and these are right."""
    known, given = drawn(turn[0], seed)
    rng = np.random.default_rng([seed, 6])
    odds = np.log(given.probability / (1 - given.probability))
    odds[BEFORE:] -= turn[1]
    return known, given, rng.random(KNOWN) < known.probability, rng.random(len(odds)) < expit(odds)


def of_traffic(streams: list[Stream]) -> np.ndarray:
    """The place of our first alarm without labels [streams]; infinite: none."""
    settings = AlarmSettings(answers_per_alarm=round((BEFORE + AFTER) / (2 * CHANCE)))
    found = first_alarms([one[0] for one in streams], [one[1] for one in streams], settings)
    places = np.stack([*found.values()])
    return np.where(places > 0, places, np.inf).min(0)


def martingale(method: str, streams: list[Stream]) -> np.ndarray:
    """As `of_traffic`, of `OnlineMartingaleTest`, which has every label."""
    from mapie.classification import SplitConformalClassifier
    from mapie.exchangeability_testing import OnlineMartingaleTest

    places = np.full(len(streams), np.inf)
    for number, (known, given, known_right, right) in enumerate(streams):
        test = OnlineMartingaleTest(
            SplitConformalClassifier(Known(), prefit=True),
            test_method=method,
            test_level=CHANCE,
            warn=False,
            random_state=number,
        )
        test.update(known.probability[:, None], known_right.astype(int))
        for start in range(0, len(right), BATCH):
            own = slice(start, start + BATCH)
            test.update(given.probability[own, None], right[own].astype(int))
            if test.is_exchangeable is False:
                places[number] = max(test.summary()["stopping_time"] - KNOWN, 1)
                break
    return places


def of_errors(wrong: np.ndarray) -> np.ndarray:
    """The label at which our monitor raises its alarm [streams]; infinite: never."""
    _, evidence = bet_on_errors(np.zeros((len(wrong), len(EXCESS_RATES))), wrong, TARGET, 0)
    above = evidence >= 1 / CHANCE
    return np.where(above.any(1), above.argmax(1) + 1.0, np.inf)


def risk_monitoring(wrong: np.ndarray) -> np.ndarray:
    """As `of_errors`. Half of its level is for a reference, which a given threshold makes needless."""
    from mapie.exchangeability_testing import RiskMonitoring

    places = np.full(len(wrong), np.inf)
    for number, own in enumerate(wrong):
        monitor = RiskMonitoring("precision", 2 * CHANCE, threshold=TARGET, warn=False)
        monitor.update((~own).astype(int), np.ones(len(own), dtype=int))
        above = monitor.online_risk_lower_bound_sequence_history > TARGET
        if above.any():
            places[number] = above.argmax() + 1
    return places


def told(places: np.ndarray, turned: bool) -> str:
    """False alarms, and the median delay of the others with the 95 % interval of its ranks."""
    false = np.isfinite(places) & ((places <= BEFORE) | (not turned))
    text = f"false {interval(false.sum(), len(places))}"
    if turned:
        n = (~false).sum()
        half = 0.98 * np.sqrt(n)
        delays = np.sort(places[~false]) - BEFORE
        ends = delays[[int(max(n / 2 - half, 0)), int(n / 2), int(min(n / 2 + half, n - 1))]]
        low, middle, high = (f"{one:.0f}" if np.isfinite(one) else "–" for one in ends)
        text += f", delay {middle} [{low}, {high}]"
    return text


def print_monitors() -> None:
    for name, turn in TURNS.items():
        streams = [stream(turn, seed) for seed in range(STREAMS)]
        print(f"\n{name}")
        print(f"  ours, no label   {told(of_traffic(streams), any(turn))}")
        for method, count in (("jumper", STREAMS), ("plugin", SLOW_STREAMS)):
            places = martingale(f"{method}_martingale", streams[:count])
            print(f"  {method}           {told(places, any(turn))}", flush=True)
    rng = np.random.default_rng(7)
    shape = (JUDGED_STREAMS, BEFORE + AFTER)
    judged = {
        "an error rate at its target": (at_target(rng, shape, TARGET), False),
        "wandering below its target": (wandering(rng, shape, TARGET), False),
    }
    for rate in (0.15, 0.2, 0.3):
        rates = np.repeat([TARGET / 2, rate], [BEFORE, AFTER])
        judged[f"an error rate of .05, then {rate:g}"] = rng.random(shape) < rates, True
    for name, (wrong, turned) in judged.items():
        print(f"\n{name}")
        print(f"  ours             {told(of_errors(wrong), turned)}")
        print(f"  RiskMonitoring   {told(risk_monitoring(wrong), turned)}", flush=True)


def rows() -> Iterator[Row]:
    if not find_spec("mapie"):
        print("MAPIE is not installed: its monitors are left out.")
        return
    print_monitors()
    wrong = np.random.default_rng(0).random((1, BEFORE + AFTER)) < TARGET
    work, other = partial(of_errors, wrong), partial(risk_monitoring, wrong)
    yield paired(f"a monitor of {wrong.shape[1]:,} labels", work, other, "MAPIE")
