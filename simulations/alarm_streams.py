"""Many streams watched at once, for simulations: where each monitor raises its first alarm."""

from collections.abc import Sequence

import numpy as np

from tracecal.calibration.calibrator import Reference
from tracecal.monitoring.monitors import BETS, BINS, Batch, Promise, detect, smoothed_ranks, uniform


def first_alarms(
    references: Sequence[Reference], streams: Sequence[Batch], promise: Promise
) -> dict[str, np.ndarray]:
    """By monitor, the place of the answer [streams] at its alarm, counted from 1; 0: none.

    They are those of `tracecal.monitoring.monitors.watch`, but for ties, which each stream breaks in a
    way of its own.
    """
    found = {}
    signals = [stream.signals() for stream in streams]
    for name, (bins, size) in BINS.items():
        ranks, places = [], []
        for number, (reference, own) in enumerate(zip(references, signals, strict=True)):
            before = np.asarray(getattr(reference, name, ()), dtype=float)
            known = np.flatnonzero(~np.isnan(own[name]))
            ties = uniform(name, promise.seed + number, 0, len(known))
            counts = np.bincount(bins(before), minlength=size)
            ranks.append(smoothed_ranks(counts, bins(own[name][known]), ties))
            places.append(known + 1)
        found[name] = _first(ranks, places, promise.limit)
    return found


def _first(ranks: Sequence[np.ndarray], places: Sequence[np.ndarray], limit: float) -> np.ndarray:
    """The first place of each stream at which its evidence reaches the limit."""
    longest = max(map(len, ranks), default=0)
    # Padded with ranks that no longer count.
    padded = np.stack([np.append(own, np.full(longest - len(own), 0.5)) for own in ranks])
    _, sums = detect(np.zeros((len(ranks), len(BETS))), padded)
    first = np.zeros(len(ranks), dtype=int)
    for number, own in enumerate(places):
        reached = np.flatnonzero(sums[number, : len(own)] >= limit)
        if len(reached):
            first[number] = own[reached[0]]
    return first
