"""Ranks of answers among all values so far.

While nothing changes, the ranks of a signal are independent and uniform, whatever its distribution.
Values are counted in bins, so that a state stays small: put values in bins with `BINS`, then
rank them with `smoothed_ranks` and the numbers of `tie_breakers`.
"""

from collections.abc import Callable

import numpy as np

from tracecal.io.randomness import seeded

MAX_LOGIT, PROBABILITY_BINS = 12.0, 1000  # logits from -12 to 12, in steps of 0.024
BINS_PER_DOUBLING, LENGTH_BINS = 32, 641  # lengths up to a million tokens
CHUNK = 64  # values ranked at once


def bins_of_probability(probability: np.ndarray) -> np.ndarray:
    """Return the bins [n], below PROBABILITY_BINS, of probabilities [n] in [0, 1]."""
    with np.errstate(divide="ignore"):
        logit = np.log(probability) - np.log1p(-probability)
    share = (np.clip(logit, -MAX_LOGIT, MAX_LOGIT) / MAX_LOGIT + 1) / 2
    return np.minimum((share * PROBABILITY_BINS).astype(int), PROBABILITY_BINS - 1)


def bins_of_length(length: np.ndarray) -> np.ndarray:
    """Return the bins [n], below LENGTH_BINS, of lengths [n] of at least 1 token."""
    return np.minimum(BINS_PER_DOUBLING * np.log2(length), LENGTH_BINS - 1).astype(int)


def bins_of_share(is_counted: np.ndarray) -> np.ndarray:
    """Return the bins [n], 0 or 1, of what is counted (1) or not (0)."""
    return is_counted.astype(int)


# By signal: the function that bins its values, and the number of bins.
BINS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], int]] = {
    "probability": (bins_of_probability, PROBABILITY_BINS),
    "length": (bins_of_length, LENGTH_BINS),
    "kept": (bins_of_share, 2),
    "unknown": (bins_of_share, 2),
}


def tie_breakers(name: str, seed: int, start: int, count: int) -> np.ndarray:
    """Return uniform numbers `start` to `start + count` of a monitor's own sequence, in [0, 1)."""
    generator = seeded("watch", name, seed)
    generator.bit_generator.advance(start)
    return generator.random(count)


def smoothed_ranks(counts: np.ndarray, bins: np.ndarray, ties: np.ndarray) -> np.ndarray:
    """Return each value's rank [n]: the share of the values so far that are below it.

    `counts` [bins] are earlier values by bin, and `bins` [n] those of the values in their order.
    `ties` [n] in [0, 1) are the share of equal values, itself included, to count as below.

    >>> smoothed_ranks(np.array([2, 0, 1]), np.array([1, 0]), np.array([0.5, 0.0])).tolist()
    [0.625, 0.0]
    """
    counts, ranks = counts.copy(), np.empty(len(bins))
    for start in range(0, len(bins), CHUNK):
        chunk = bins[start : start + CHUNK]
        earlier = np.tri(len(chunk), k=-1, dtype=bool)
        below = np.cumsum(counts)[chunk] - counts[chunk]
        below += (earlier & (chunk[None] < chunk[:, None])).sum(1)
        equal = counts[chunk] + (earlier & (chunk[None] == chunk[:, None])).sum(1) + 1
        total = counts.sum() + np.arange(1, len(chunk) + 1)
        ranks[start : start + CHUNK] = (below + ties[start : start + CHUNK] * equal) / total
        counts += np.bincount(chunk, minlength=len(counts))
    return ranks
