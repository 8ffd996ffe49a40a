"""The first alarms of each monitor in many streams, watched at once for simulations."""

from collections.abc import Sequence

import numpy as np

from tracecal.calibrator.schema import Reference
from tracecal.monitoring.batch import MONITORS, Batch
from tracecal.monitoring.betting import (
    DEPENDENCE_STAKES,
    STAKES,
    WINDOW,
    bet_on_change,
    bet_on_dependence,
)
from tracecal.monitoring.ranks import BINS, smoothed_ranks, tie_breakers
from tracecal.monitoring.state import DEPENDENCE_LIMIT, AlarmSettings


def first_alarms(
    references: Sequence[Reference],
    streams: Sequence[Batch],
    settings: AlarmSettings,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Return by monitor the number of the answer at its alarm [streams], from 1; 0: none.

    They equal those of `tracecal.monitoring.state.watch` with the seeds `seed`, `seed` + 1, ...
    """
    alarms = {}
    for name in MONITORS:
        ranks, numbers = _ranks(name, references, streams, seed)
        _, evidence = bet_on_change(np.zeros((len(ranks), len(STAKES))), ranks)
        alarms[name] = _first(evidence, numbers, settings.limit)
    return alarms


def first_warnings(
    references: Sequence[Reference], streams: Sequence[Batch], seed: int = 0
) -> np.ndarray:
    """Return the number of the answer at which neighbours are found to be alike, as `first_alarms`.

    It is the first of all signals.
    """
    first = np.zeros(len(streams), dtype=int)
    for name in MONITORS:
        ranks, numbers = _ranks(name, references, streams, seed)
        if not ranks.shape[1]:
            continue
        last = np.full((len(ranks), WINDOW + 1), 0.5)
        wealth = bet_on_dependence(np.ones((len(ranks), len(DEPENDENCE_STAKES))), last, ranks)
        found = _first(wealth.mean(2), numbers, DEPENDENCE_LIMIT)
        first = np.where((first == 0) | ((found > 0) & (found < first)), found, first)
    return first


def _ranks(
    name: str, references: Sequence[Reference], streams: Sequence[Batch], seed: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return a monitor's ranks [streams, n], padded with 1/2, and the numbers of their answers."""
    binned, size = BINS[name]
    ranks, numbers = [], []
    for number, (reference, stream) in enumerate(zip(references, streams, strict=True)):
        values, before = stream.signals[name], getattr(reference, name, ())
        defined = np.flatnonzero(~np.isnan(values))
        ties = tie_breakers(name, seed + number, 0, len(defined))
        counts = np.bincount(binned(np.asarray(before, dtype=float)), minlength=size)
        ranks.append(smoothed_ranks(counts, binned(values[defined]), ties))
        numbers.append(defined + 1)
    longest = max(map(len, ranks), default=0)
    padded = [np.append(row, np.full(longest - len(row), 0.5)) for row in ranks]
    return np.stack(padded), numbers


def _first(evidence: np.ndarray, numbers: Sequence[np.ndarray], limit: float) -> np.ndarray:
    """The number of the first answer of each stream at which evidence reaches the limit; 0: none."""
    first = np.zeros(len(evidence), dtype=int)
    for stream, answers in enumerate(numbers):
        reached = np.flatnonzero(evidence[stream, : len(answers)] >= limit)
        if len(reached):
            first[stream] = answers[reached[0]]
    return first
