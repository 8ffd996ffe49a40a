"""Many streams watched at once, for simulations: where each monitor raises its first alarm."""

from collections.abc import Sequence

import numpy as np

from tracecal.calibrator.schema import Reference
from tracecal.serving.monitoring.batch import MONITORS, Batch
from tracecal.serving.monitoring.betting import (
    DEPENDENCE_STAKES,
    STAKES,
    WINDOW,
    bet_on_change,
    bet_on_dependence,
)
from tracecal.serving.monitoring.ranks import bins_of, smoothed_ranks, tie_breakers
from tracecal.serving.monitoring.state import DEPENDENCE_LIMIT, AlarmSettings


def first_alarms(
    references: Sequence[Reference],
    streams: Sequence[Batch],
    settings: AlarmSettings,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """By monitor, the place of the answer [streams] at its alarm, counted from 1; 0: none.

    They are those of `tracecal.serving.monitoring.state.watch` with the seeds `seed`, `seed` + 1 and so on.
    """
    found = {}
    for name in MONITORS:
        ranks, places = _ranks(name, references, streams, settings.block, seed)
        _, evidence = bet_on_change(np.zeros((len(ranks), len(STAKES))), ranks)
        found[name] = _first(evidence, places, settings.limit)
    return found


def first_warnings(
    references: Sequence[Reference],
    streams: Sequence[Batch],
    settings: AlarmSettings,
    seed: int = 0,
) -> np.ndarray:
    """As `first_alarms`, the places at which neighbours are found to be alike."""
    ranks, places = _ranks("probability", references, streams, settings.block, seed)
    last = np.full((len(ranks), WINDOW + 1), 0.5)
    wealth = bet_on_dependence(np.ones((len(ranks), len(DEPENDENCE_STAKES))), last, ranks)
    return _first(wealth.mean(2), places, DEPENDENCE_LIMIT)


def _ranks(
    name: str, references: Sequence[Reference], streams: Sequence[Batch], block: int, seed: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The ranks [streams, n] of a monitor, 1/2 behind a stream's last one, and their places."""
    binned, size = bins_of(block)[name]
    ranks, places = [], []
    for number, (reference, stream) in enumerate(zip(references, streams, strict=True)):
        values = stream[: len(stream) // block * block].signals(block)[name]
        before = () if block > 1 else getattr(reference, name, ())
        known = np.flatnonzero(~np.isnan(values))
        ties = tie_breakers(name, seed + number, 0, len(known))
        counts = np.bincount(binned(np.asarray(before, dtype=float)), minlength=size)
        ranks.append(smoothed_ranks(counts, binned(values[known]), ties))
        places.append((known + 1) * block)
    longest = max(map(len, ranks), default=0)
    return np.stack([np.append(own, np.full(longest - len(own), 0.5)) for own in ranks]), places


def _first(evidence: np.ndarray, places: Sequence[np.ndarray], limit: float) -> np.ndarray:
    """The first place of each stream at which its evidence reaches the limit; 0: none."""
    first = np.zeros(len(evidence), dtype=int)
    for number, own in enumerate(places):
        reached = np.flatnonzero(evidence[number, : len(own)] >= limit)
        if len(reached):
            first[number] = own[reached[0]]
    return first
