"""How soon a change of the traffic raises an alarm: the monitors, a window, and ADWIN of river.

    pip install river==0.22.0    # in an environment that has this project's requirements
    PYTHONPATH=workflow_scripts:tests python -m benchmarks.alarms

Streams of made-up answers whose score, before the sigmoid, falls by so many standard deviations
after BEFORE answers. Prints false alarms (before the turn, and in streams that do not turn) and the
median and the 90 % quantile of the answers from the turn to the alarm. Beside the monitors stand a
window of the last answers with the two-sample Kolmogorov-Smirnov statistic, and ADWIN (Bifet and
Gavaldà 2007) on the probability, which gets the reference's answers first. For both, the most
sensitive setting is taken that raises false alarms in no more of the unchanged streams than the
monitors do, which nobody could know beforehand.
"""

import sys

import numpy as np
from scipy.special import expit

from simulations.alarm_streams import first_alarms
from tracecal.calibrator.schema import Reference
from tracecal.monitoring.batch import Batch
from tracecal.monitoring.state import AlarmSettings

STREAMS, KNOWN, BEFORE, AFTER = 200, 300, 300, 700
WINDOW, STEP = 100, 10
SHIFTS = (0.0, 0.25, 0.5, 1.0)
DELTAS = 10.0 ** -np.arange(0.0, 6.05, 0.1)


def drawn(shift: float, seed: int) -> tuple[Reference, Batch]:
    """A reference, and a stream that turns after BEFORE answers."""
    rng = np.random.default_rng([seed, round(100 * shift)])
    score = rng.normal(size=KNOWN + BEFORE + AFTER)
    score[KNOWN + BEFORE :] -= shift
    probability = expit(score)
    length = 1.0 + rng.poisson(np.exp(2 - score / 2))
    known = Reference(probability[:KNOWN], length[:KNOWN])
    kept = np.where(probability[KNOWN:] >= 0.7, 1.0, 0.0)
    return known, Batch(probability[KNOWN:], length[KNOWN:], kept)


def monitors(streams: list[tuple[Reference, Batch]]) -> np.ndarray:
    """The place of the first alarm of any monitor [streams]; infinite: none."""
    references, batches = zip(*streams, strict=True)
    found = np.stack([*first_alarms(references, batches, AlarmSettings()).values()])
    return np.where(found > 0, found, np.inf).min(axis=0)


def distance(reference: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The Kolmogorov-Smirnov statistic [n] of the last WINDOW values and the reference.

    0 where a window is not full, and between the STEPs.
    """
    found = np.zeros(len(values))
    grid = np.unique(np.append(reference, values))
    expected = np.searchsorted(np.sort(reference), grid, side="right") / len(reference)
    for end in range(WINDOW, len(values) + 1, STEP):
        last = np.sort(values[end - WINDOW : end])
        share = np.searchsorted(last, grid, side="right") / WINDOW
        found[end - 1] = np.abs(share - expected).max()
    return found


def window(streams: list[tuple[Reference, Batch]]) -> np.ndarray:
    """The statistic after each answer [streams, answers]; an alarm is where it is above a limit."""
    return np.stack([distance(known.probability, one.probability) for known, one in streams])


def adwin(streams: list[tuple[Reference, Batch]], delta: float) -> np.ndarray:
    """The place of the first alarm [streams]; infinite: none."""
    from river.drift import ADWIN

    places = np.full(len(streams), np.inf)
    for number, (known, one) in enumerate(streams):
        detector = ADWIN(delta=delta)
        for value in known.probability:
            detector.update(value)
        for place, value in enumerate(one.probability, 1):
            detector.update(value)
            if detector.drift_detected:
                places[number] = place
                break
    return places


def line(places: np.ndarray, turned: bool) -> str:
    """The share of false alarms, and the delays of the others."""
    false = np.isfinite(places) & ((places <= BEFORE) | (not turned))
    delays = [np.inf, np.inf]
    if turned and not false.all():
        delays = np.quantile(places[~false] - BEFORE, [0.5, 0.9], method="inverted_cdf")
    told = "".join(f"{one:>8.0f}" if np.isfinite(one) else f"{'-':>8}" for one in delays)
    return f"{false.mean():>10.3f}{told}"


def main() -> int:
    streams = {shift: [drawn(shift, seed) for seed in range(STREAMS)] for shift in SHIFTS}
    found = {"monitors": {shift: monitors(own) for shift, own in streams.items()}}
    share = np.isfinite(found["monitors"][0.0]).mean()
    statistics = {shift: window(own) for shift, own in streams.items()}
    largest = np.sort(statistics[0.0].max(axis=1))[::-1]
    limit = largest[min(int(share * STREAMS + 1e-9), STREAMS - 1)]
    found["window"] = {
        shift: np.where((own > limit).any(axis=1), (own > limit).argmax(axis=1) + 1.0, np.inf)
        for shift, own in statistics.items()
    }
    try:
        import river  # noqa: F401
    except ImportError:
        print("river is not installed: without ADWIN")
    else:
        allowed = (
            one for one in DELTAS if np.isfinite(adwin(streams[0.0], one)).mean() <= share + 1e-9
        )
        if (delta := next(allowed, None)) is not None:
            found["ADWIN"] = {shift: adwin(own, delta) for shift, own in streams.items()}
    print(f"{'shift, s.d.':<12}" + "".join(f"{way:>26}" for way in found))
    print(f"{'':<12}" + f"{'false':>10}{'median':>8}{'90 %':>8}" * len(found))
    for shift in SHIFTS:
        print(f"{shift:<12g}" + "".join(line(own[shift], shift > 0) for own in found.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
